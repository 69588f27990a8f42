#include "textflag.h"

// Registers: R14 the tile, DI its rows of C, R11 the distance of two, R10 how many are left;
// AX and BX the terms of the first and of the seventh row of A, R8, R9 and R13 once, three and
// five times the distance of two rows, R12 that of two terms; SI the row of B, DX the distance
// of two, CX how many are left or, before the first, the row of C to ask for. K1 has the columns
// of the last vector, K2 and K3 those of the others and of the last one of which C is added.
#define START \
	MOVQ  t+0(FP), R14; \
	MOVQ  0(R14), DI; \
	MOVQ  40(R14), R8; \
	MOVQ  48(R14), R12; \
	MOVQ  56(R14), DX; \
	MOVQ  64(R14), R11; \
	MOVQ  72(R14), R10; \
	KMOVQ 80(R14), K1; \
	KMOVQ 88(R14), K2; \
	KANDQ K1, K2, K3; \
	LEAQ  (R8)(R8*2), R9; \
	LEAQ  (R9)(R8*2), R13

// TILE goes to the start of a tile of A and of B, CX to the first row of all sums.
#define TILE \
	MOVQ 8(R14), AX; \
	LEAQ (AX)(R9*2), BX; \
	MOVQ 16(R14), SI; \
	MOVQ 24(R14), CX

// AHEADn asks for the n vectors of a row of C, and goes to the next.
#define AHEAD2 \
	PREFETCHT0 (CX); \
	PREFETCHT0 64(CX); \
	ADDQ R11, CX

#define AHEAD4 \
	PREFETCHT0 128(CX); \
	PREFETCHT0 192(CX); \
	AHEAD2

// STEP goes to the next term.
#define STEP \
	ADDQ R12, AX; \
	ADDQ R12, BX; \
	ADDQ DX, SI; \
	DECQ CX; \
	JNZ  term

// NEXT goes to the next tile, three times so many rows below.
#define NEXT(threes) \
	MOVQ 8(R14), AX; \
	LEAQ (AX)(R9*threes), AX; \
	MOVQ AX, 8(R14); \
	JMP  tile

// COPYn begins the sums of another row as those of the first.
#define COPY2(a, b) \
	VMOVAPS Z8, a; \
	VMOVAPS Z9, b

#define COPY4(a, b, c, d) \
	COPY2(a, b); \
	VMOVAPS Z10, c; \
	VMOVAPS Z11, d

// ROWn adds to the sums of a row, in n vectors, an entry of A × a row of B.
#define ROW1(entry, a) \
	VFMADD231PS.BCST entry, Z0, a

#define ROW2(entry, a, b) \
	VBROADCASTSS entry, Z4; \
	VFMADD231PS Z0, Z4, a; \
	VFMADD231PS Z1, Z4, b

#define ROW4(entry, a, b, c, d) \
	VBROADCASTSS entry, Z4; \
	VFMADD231PS Z0, Z4, a; \
	VFMADD231PS Z1, Z4, b; \
	VFMADD231PS Z2, Z4, c; \
	VFMADD231PS Z3, Z4, d

// KEEPn finishes a row and stores it: it adds C, if wanted, and takes the maximum with Z0.
// A NaN stays one.
#define KEEP1(a) \
	VADDPS  (DI), a, K3, a; \
	VMAXPS  a, Z0, a; \
	VMOVUPS a, K1, (DI); \
	ADDQ    R11, DI; \
	DECQ    R10; \
	JZ      done

#define KEEP2(a, b) \
	VADDPS  (DI), a, K2, a; \
	VADDPS  64(DI), b, K3, b; \
	VMAXPS  a, Z0, a; \
	VMAXPS  b, Z0, b; \
	VMOVUPS a, (DI); \
	VMOVUPS b, K1, 64(DI); \
	ADDQ    R11, DI; \
	DECQ    R10; \
	JZ      done

#define KEEP4(a, b, c, d) \
	VADDPS  (DI), a, K2, a; \
	VADDPS  64(DI), b, K2, b; \
	VADDPS  128(DI), c, K2, c; \
	VADDPS  192(DI), d, K3, d; \
	VMAXPS  a, Z0, a; \
	VMAXPS  b, Z0, b; \
	VMAXPS  c, Z0, c; \
	VMAXPS  d, Z0, d; \
	VMOVUPS a, (DI); \
	VMOVUPS b, 64(DI); \
	VMOVUPS c, 128(DI); \
	VMOVUPS d, K1, 192(DI); \
	ADDQ    R11, DI; \
	DECQ    R10; \
	JZ      done

// func tiles1(t *tile32)
TEXT ·tiles1(SB), NOSPLIT, $0-8
	START

tile:
	TILE
	VMOVUPS.Z (CX), K1, Z8
	VMOVAPS Z8, Z9
	VMOVAPS Z8, Z10
	VMOVAPS Z8, Z11
	VMOVAPS Z8, Z12
	VMOVAPS Z8, Z13
	VMOVAPS Z8, Z14
	VMOVAPS Z8, Z15
	VMOVAPS Z8, Z16
	VMOVAPS Z8, Z17
	VMOVAPS Z8, Z18
	VMOVAPS Z8, Z19
	MOVQ    32(R14), CX

term:
	VMOVUPS (SI), Z0
	ROW1((AX), Z8)
	ROW1((AX)(R8*1), Z9)
	ROW1((AX)(R8*2), Z10)
	ROW1((AX)(R9*1), Z11)
	ROW1((AX)(R8*4), Z12)
	ROW1((AX)(R13*1), Z13)
	ROW1((BX), Z14)
	ROW1((BX)(R8*1), Z15)
	ROW1((BX)(R8*2), Z16)
	ROW1((BX)(R9*1), Z17)
	ROW1((BX)(R8*4), Z18)
	ROW1((BX)(R13*1), Z19)
	STEP

	VBROADCASTSS 96(R14), Z0
	KEEP1(Z8)
	KEEP1(Z9)
	KEEP1(Z10)
	KEEP1(Z11)
	KEEP1(Z12)
	KEEP1(Z13)
	KEEP1(Z14)
	KEEP1(Z15)
	KEEP1(Z16)
	KEEP1(Z17)
	KEEP1(Z18)
	KEEP1(Z19)
	NEXT(4)

done:
	VZEROUPPER
	RET

// func tiles2(t *tile32)
TEXT ·tiles2(SB), NOSPLIT, $0-8
	START

tile:
	MOVQ DI, CX
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	AHEAD2
	TILE
	VMOVUPS (CX), Z8
	VMOVUPS.Z 64(CX), K1, Z9
	COPY2(Z10, Z11)
	COPY2(Z12, Z13)
	COPY2(Z14, Z15)
	COPY2(Z16, Z17)
	COPY2(Z18, Z19)
	COPY2(Z20, Z21)
	COPY2(Z22, Z23)
	COPY2(Z24, Z25)
	COPY2(Z26, Z27)
	COPY2(Z28, Z29)
	COPY2(Z30, Z31)
	MOVQ    32(R14), CX

term:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	ROW2((AX), Z8, Z9)
	ROW2((AX)(R8*1), Z10, Z11)
	ROW2((AX)(R8*2), Z12, Z13)
	ROW2((AX)(R9*1), Z14, Z15)
	ROW2((AX)(R8*4), Z16, Z17)
	ROW2((AX)(R13*1), Z18, Z19)
	ROW2((BX), Z20, Z21)
	ROW2((BX)(R8*1), Z22, Z23)
	ROW2((BX)(R8*2), Z24, Z25)
	ROW2((BX)(R9*1), Z26, Z27)
	ROW2((BX)(R8*4), Z28, Z29)
	ROW2((BX)(R13*1), Z30, Z31)
	STEP

	VBROADCASTSS 96(R14), Z0
	KEEP2(Z8, Z9)
	KEEP2(Z10, Z11)
	KEEP2(Z12, Z13)
	KEEP2(Z14, Z15)
	KEEP2(Z16, Z17)
	KEEP2(Z18, Z19)
	KEEP2(Z20, Z21)
	KEEP2(Z22, Z23)
	KEEP2(Z24, Z25)
	KEEP2(Z26, Z27)
	KEEP2(Z28, Z29)
	KEEP2(Z30, Z31)
	NEXT(4)

done:
	VZEROUPPER
	RET

// func tiles4(t *tile32)
TEXT ·tiles4(SB), NOSPLIT, $0-8
	START

tile:
	MOVQ DI, CX
	AHEAD4
	AHEAD4
	AHEAD4
	AHEAD4
	AHEAD4
	AHEAD4
	TILE
	VMOVUPS (CX), Z8
	VMOVUPS 64(CX), Z9
	VMOVUPS 128(CX), Z10
	VMOVUPS.Z 192(CX), K1, Z11
	COPY4(Z12, Z13, Z14, Z15)
	COPY4(Z16, Z17, Z18, Z19)
	COPY4(Z20, Z21, Z22, Z23)
	COPY4(Z24, Z25, Z26, Z27)
	COPY4(Z28, Z29, Z30, Z31)
	MOVQ    32(R14), CX

term:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VMOVUPS 128(SI), Z2
	VMOVUPS 192(SI), Z3
	ROW4((AX), Z8, Z9, Z10, Z11)
	ROW4((AX)(R8*1), Z12, Z13, Z14, Z15)
	ROW4((AX)(R8*2), Z16, Z17, Z18, Z19)
	ROW4((AX)(R9*1), Z20, Z21, Z22, Z23)
	ROW4((AX)(R8*4), Z24, Z25, Z26, Z27)
	ROW4((AX)(R13*1), Z28, Z29, Z30, Z31)
	STEP

	VBROADCASTSS 96(R14), Z0
	KEEP4(Z8, Z9, Z10, Z11)
	KEEP4(Z12, Z13, Z14, Z15)
	KEEP4(Z16, Z17, Z18, Z19)
	KEEP4(Z20, Z21, Z22, Z23)
	KEEP4(Z24, Z25, Z26, Z27)
	KEEP4(Z28, Z29, Z30, Z31)
	NEXT(2)

done:
	VZEROUPPER
	RET

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

// func softmax16(scores unsafe.Pointer, stride, seen, some int, factor float32)
//
// K1 has the lanes that see a key of those which not all do.
TEXT ·softmax16(SB), NOSPLIT, $0-36
	MOVQ         scores+0(FP), DI
	MOVQ         stride+8(FP), DX
	MOVQ         seen+16(FP), R8
	MOVQ         some+24(FP), R9
	VBROADCASTSS factor+32(FP), Z30
	VBROADCASTSS ·powers+0(SB), Z16
	VBROADCASTSS ·powers+4(SB), Z17
	VBROADCASTSS ·powers+8(SB), Z18
	VBROADCASTSS ·powers+12(SB), Z19
	VBROADCASTSS ·powers+16(SB), Z20
	VBROADCASTSS ·powers+20(SB), Z21
	VBROADCASTSS ·powers+24(SB), Z22
	VBROADCASTSS ·powers+28(SB), Z29
	VBROADCASTSS ·powers+36(SB), Z31
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
