//go:build goexperiment.simd

#include "textflag.h"

// 2ʳ for |r| ≤ 1/2, from the highest power on, to 2e-9 relative before rounding. The last but
// one constant keeps exponents of rounded scores finite, the last is −∞.
DATA power<>+0(SB)/4, $0.0001534581242594868
DATA power<>+4(SB)/4, $0.0013399930903688073
DATA power<>+8(SB)/4, $0.009618489071726799
DATA power<>+12(SB)/4, $0.05550328642129898
DATA power<>+16(SB)/4, $0.24022646248340607
DATA power<>+20(SB)/4, $0.6931471824645996
DATA power<>+24(SB)/4, $1.0
DATA power<>+28(SB)/4, $-200.0
DATA power<>+32(SB)/4, $0xff800000
GLOBL power<>(SB), RODATA|NOPTR, $36

// WEIGHT makes of the scores at AX the weights 2^(score·Z30 − Z31) in Z0, by way of Z1.
#define WEIGHT \
	VMOVUPS      (AX), Z1; \
	VFMSUB213PS  Z31, Z30, Z1; \
	VMAXPS       Z1, Z29, Z1; \
	VRNDSCALEPS  $8, Z1, Z2; \
	VSUBPS       Z2, Z1, Z1; \
	VMOVAPS      Z16, Z0; \
	VFMADD213PS  Z17, Z1, Z0; \
	VFMADD213PS  Z18, Z1, Z0; \
	VFMADD213PS  Z19, Z1, Z0; \
	VFMADD213PS  Z20, Z1, Z0; \
	VFMADD213PS  Z21, Z1, Z0; \
	VFMADD213PS  Z22, Z1, Z0; \
	VSCALEFPS    Z2, Z0, Z0

// func softmax(scores Pointer, stride, seen, some int, factor float32)
//
// K1 has the lanes that see a key of those which not all do.
TEXT ·softmax(SB), NOSPLIT, $0-36
	MOVQ         scores+0(FP), DI
	MOVQ         stride+8(FP), DX
	MOVQ         seen+16(FP), R8
	MOVQ         some+24(FP), R9
	VBROADCASTSS factor+32(FP), Z30
	VBROADCASTSS power<>+0(SB), Z16
	VBROADCASTSS power<>+4(SB), Z17
	VBROADCASTSS power<>+8(SB), Z18
	VBROADCASTSS power<>+12(SB), Z19
	VBROADCASTSS power<>+16(SB), Z20
	VBROADCASTSS power<>+20(SB), Z21
	VBROADCASTSS power<>+24(SB), Z22
	VBROADCASTSS power<>+28(SB), Z29
	VBROADCASTSS power<>+32(SB), Z31
	MOVQ         $0xfffe, R10

	MOVQ  DI, AX
	MOVQ  R8, CX
	TESTQ CX, CX
	JZ    topSome

top:
	VMAXPS (AX), Z31, Z31
	ADDQ   DX, AX
	DECQ   CX
	JNZ    top

topSome:
	MOVQ  R9, CX
	TESTQ CX, CX
	JZ    weights
	KMOVQ R10, K1

topMasked:
	VMAXPS  (AX), Z31, K1, Z31
	KSHIFTLW $1, K1, K1
	ADDQ    DX, AX
	DECQ    CX
	JNZ     topMasked

weights:
	VMULPS Z30, Z31, Z31
	VPXORQ Z28, Z28, Z28
	MOVQ   DI, AX
	MOVQ   R8, CX
	TESTQ  CX, CX
	JZ     weightsSome

weight:
	WEIGHT
	VADDPS  Z0, Z28, Z28
	VMOVUPS Z0, (AX)
	ADDQ    DX, AX
	DECQ    CX
	JNZ     weight

weightsSome:
	MOVQ  R9, CX
	TESTQ CX, CX
	JZ    divide
	KMOVQ R10, K1

weightMasked:
	WEIGHT
	VMOVAPS.Z Z0, K1, Z0
	VADDPS    Z0, Z28, Z28
	VMOVUPS   Z0, (AX)
	KSHIFTLW  $1, K1, K1
	ADDQ      DX, AX
	DECQ      CX
	JNZ       weightMasked

divide:
	VDIVPS Z28, Z22, Z28
	MOVQ   DI, AX
	MOVQ   R8, CX
	ADDQ   R9, CX

factors:
	VMULPS  (AX), Z28, Z0
	VMOVUPS Z0, (AX)
	ADDQ    DX, AX
	DECQ    CX
	JNZ     factors
	VZEROUPPER
	RET
