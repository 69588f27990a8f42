//go:build goexperiment.simd

#include "textflag.h"

// ROW adds to a row of sums one entry of the left-hand side × a row of the right-hand side.
#define ROW(a, l, r) \
	VFMADD231PS.BCST a, Z0, l; \
	VFMADD231PS.BCST a, Z1, r

// KEEP starts one of the rows that are stored: it adds what is there to the sums, or leaves
// them, and stores them.
#define KEEP(l, r) \
	VADDPS (DI), l, K3, l; \
	VADDPS 64(DI), r, K4, r; \
	VMOVUPS l, K1, (DI); \
	VMOVUPS r, K2, 64(DI); \
	ADDQ R11, DI; \
	DECQ R10; \
	JZ   done

#define CLEAR(l, r) \
	VPXORD l, l, l; \
	VPXORD r, r, r

// func tile(z, x, packed unsafe.Pointer, terms, strideX, strideZ, rows int, left, right, add uint16)
TEXT ·tile(SB), NOSPLIT, $0-62
	MOVQ    z+0(FP), DI
	MOVQ    x+8(FP), AX
	MOVQ    packed+16(FP), SI
	MOVQ    terms+24(FP), CX
	MOVQ    strideX+32(FP), R8
	MOVQ    strideZ+40(FP), R11
	MOVQ    rows+48(FP), R10
	MOVWLZX left+56(FP), R12
	MOVWLZX right+58(FP), R13
	MOVWLZX add+60(FP), DX
	KMOVW   R12, K1
	KMOVW   R13, K2
	ANDL    DX, R12
	ANDL    DX, R13
	KMOVW   R12, K3
	KMOVW   R13, K4
	SHLQ    $2, R8
	SHLQ    $2, R11
	LEAQ    (R8)(R8*2), R9
	LEAQ    (AX)(R8*4), BX
	CLEAR(Z16, Z17)
	CLEAR(Z18, Z19)
	CLEAR(Z20, Z21)
	CLEAR(Z22, Z23)
	CLEAR(Z24, Z25)
	CLEAR(Z26, Z27)
	CLEAR(Z28, Z29)
	CLEAR(Z30, Z31)

term:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	ROW((AX), Z16, Z17)
	ROW((AX)(R8*1), Z18, Z19)
	ROW((AX)(R8*2), Z20, Z21)
	ROW((AX)(R9*1), Z22, Z23)
	ROW((BX), Z24, Z25)
	ROW((BX)(R8*1), Z26, Z27)
	ROW((BX)(R8*2), Z28, Z29)
	ROW((BX)(R9*1), Z30, Z31)
	ADDQ    $128, SI
	ADDQ    $4, AX
	ADDQ    $4, BX
	DECQ    CX
	JNZ     term

	KEEP(Z16, Z17)
	KEEP(Z18, Z19)
	KEEP(Z20, Z21)
	KEEP(Z22, Z23)
	KEEP(Z24, Z25)
	KEEP(Z26, Z27)
	KEEP(Z28, Z29)
	KEEP(Z30, Z31)

done:
	VZEROUPPER
	RET
