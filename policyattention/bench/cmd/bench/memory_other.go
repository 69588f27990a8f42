//go:build !linux

package main

import "errors"

func memory() (float64, error) { return 0, errors.New("the study of growth needs Linux") }
