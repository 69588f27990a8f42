"use strict";
boot();
