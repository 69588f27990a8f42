#include "textflag.h"

// COPY begins the sums of another row as those of the first.
#define COPY(a, b) \
	VMOVAPS Y4, a; \
	VMOVAPS Y5, b

// ROW adds to the sums of a row an entry of A × a row of B.
#define ROW(entry, factor, a, b) \
	VBROADCASTSS entry, factor; \
	VFMADD231PS  Y0, factor, a; \
	VFMADD231PS  Y1, factor, b

// KEEP finishes a row: the maximum with Y2, where a NaN stays one.
#define KEEP(a, b) \
	VMAXPS  a, Y2, a; \
	VMAXPS  b, Y2, b; \
	VMOVUPS a, (DI); \
	VMOVUPS b, 32(DI); \
	ADDQ    R11, DI; \
	DECQ    R10; \
	JZ      done

#define ADDKEEP(a, b) \
	VADDPS (DI), a, a; \
	VADDPS 32(DI), b, b; \
	KEEP(a, b)

// PARTKEEP is for the lanes of Y0 and Y1, and adds C in those at CX.
#define PARTKEEP(a, b) \
	VMASKMOVPS (DI), Y0, Y3; \
	VANDPS     (CX), Y3, Y3; \
	VADDPS     Y3, a, a; \
	VMASKMOVPS 32(DI), Y1, Y3; \
	VANDPS     (CX), Y3, Y3; \
	VADDPS     Y3, b, b; \
	VMAXPS     a, Y2, a; \
	VMAXPS     b, Y2, b; \
	VMASKMOVPS a, Y0, (DI); \
	VMASKMOVPS b, Y1, 32(DI); \
	ADDQ       R11, DI; \
	DECQ       R10; \
	JZ         done

// func tiles16(t *tile32)
//
// Tiles of 6 rows and 16 columns; registers as in avx512_amd64.s.
TEXT ·tiles16(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), R14
	MOVQ 0(R14), DI
	MOVQ 40(R14), R8
	MOVQ 48(R14), R12
	MOVQ 56(R14), DX
	MOVQ 64(R14), R11
	MOVQ 72(R14), R10
	LEAQ (R8)(R8*2), R9
	LEAQ (R9)(R8*2), R13

tile:
	MOVQ    8(R14), AX
	MOVQ    16(R14), SI
	MOVQ    24(R14), CX
	VMOVUPS (CX), Y4
	VMOVUPS 32(CX), Y5
	COPY(Y6, Y7)
	COPY(Y8, Y9)
	COPY(Y10, Y11)
	COPY(Y12, Y13)
	COPY(Y14, Y15)
	MOVQ    32(R14), CX

term:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	ROW((AX), Y2, Y4, Y5)
	ROW((AX)(R8*1), Y3, Y6, Y7)
	ROW((AX)(R8*2), Y2, Y8, Y9)
	ROW((AX)(R9*1), Y3, Y10, Y11)
	ROW((AX)(R8*4), Y2, Y12, Y13)
	ROW((AX)(R13*1), Y3, Y14, Y15)
	ADDQ    R12, AX
	ADDQ    DX, SI
	DECQ    CX
	JNZ     term

	VBROADCASTSS 96(R14), Y2
	MOVQ         88(R14), BX
	CMPQ         80(R14), $0xffff
	JNE          part
	TESTQ        BX, BX
	JNZ          added
	KEEP(Y4, Y5)
	KEEP(Y6, Y7)
	KEEP(Y8, Y9)
	KEEP(Y10, Y11)
	KEEP(Y12, Y13)
	KEEP(Y14, Y15)
	JMP next

added:
	ADDKEEP(Y4, Y5)
	ADDKEEP(Y6, Y7)
	ADDKEEP(Y8, Y9)
	ADDKEEP(Y10, Y11)
	ADDKEEP(Y12, Y13)
	ADDKEEP(Y14, Y15)
	JMP next

part:
	POPCNTQ 80(R14), AX
	LEAQ    ·counted(SB), CX
	LEAQ    64(CX), SI
	SHLQ    $2, AX
	SUBQ    AX, SI
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	TESTQ   BX, BX
	JNZ     keep
	ADDQ    $64, CX

keep:
	PARTKEEP(Y4, Y5)
	PARTKEEP(Y6, Y7)
	PARTKEEP(Y8, Y9)
	PARTKEEP(Y10, Y11)
	PARTKEEP(Y12, Y13)
	PARTKEEP(Y14, Y15)

next:
	MOVQ 8(R14), AX
	LEAQ (AX)(R9*2), AX
	MOVQ AX, 8(R14)
	JMP  tile

done:
	VZEROUPPER
	RET

// WEIGHT8 makes of the scores at AX the weights 2^(score·Y15 − Y14) in Y0, by way of Y1 and Y2.
#define WEIGHT8 \
	VMOVUPS     (AX), Y1; \
	VFMSUB213PS Y14, Y15, Y1; \
	VMAXPS      Y1, Y12, Y1; \
	VROUNDPS    $8, Y1, Y2; \
	VSUBPS      Y2, Y1, Y1; \
	VMOVAPS     Y5, Y0; \
	VFMADD213PS Y6, Y1, Y0; \
	VFMADD213PS Y7, Y1, Y0; \
	VFMADD213PS Y8, Y1, Y0; \
	VFMADD213PS Y9, Y1, Y0; \
	VFMADD213PS Y10, Y1, Y0; \
	VFMADD213PS Y11, Y1, Y0; \
	VCVTPS2DQ   Y2, Y2; \
	VPADDD      ·bias8(SB), Y2, Y2; \
	VPSLLD      $23, Y2, Y2; \
	VMULPS      Y2, Y0, Y0

// func softmax8(scores unsafe.Pointer, stride, seen, some int, factor float32)
//
// The sign of a lane of Y4 says that it sees a key of those which not all do.
TEXT ·softmax8(SB), NOSPLIT, $0-36
	MOVQ         scores+0(FP), DI
	MOVQ         stride+8(FP), DX
	MOVQ         seen+16(FP), R8
	MOVQ         some+24(FP), R9
	VBROADCASTSS factor+32(FP), Y15
	VBROADCASTSS ·powers+0(SB), Y5
	VBROADCASTSS ·powers+4(SB), Y6
	VBROADCASTSS ·powers+8(SB), Y7
	VBROADCASTSS ·powers+12(SB), Y8
	VBROADCASTSS ·powers+16(SB), Y9
	VBROADCASTSS ·powers+20(SB), Y10
	VBROADCASTSS ·powers+24(SB), Y11
	VBROADCASTSS ·powers+32(SB), Y12
	VBROADCASTSS ·powers+36(SB), Y13
	VMOVAPS      Y13, Y14

	MOVQ DI, AX
	MOVQ R8, CX

top:
	VMAXPS (AX), Y14, Y14
	ADDQ   DX, AX
	DECQ   CX
	JNZ    top

	MOVQ    R9, CX
	TESTQ   CX, CX
	JZ      weights
	VMOVUPS ·later8(SB), Y4

topSome:
	VMOVUPS   (AX), Y1
	VBLENDVPS Y4, Y1, Y13, Y1
	VMAXPS    Y1, Y14, Y14
	VPADDD    ·one8(SB), Y4, Y4
	ADDQ      DX, AX
	DECQ      CX
	JNZ       topSome

weights:
	VMULPS Y15, Y14, Y14
	VXORPS Y13, Y13, Y13
	MOVQ   DI, AX
	MOVQ   R8, CX

weight:
	WEIGHT8
	VADDPS  Y0, Y13, Y13
	VMOVUPS Y0, (AX)
	ADDQ    DX, AX
	DECQ    CX
	JNZ     weight

	MOVQ    R9, CX
	TESTQ   CX, CX
	JZ      divide
	VMOVUPS ·later8(SB), Y4

weightSome:
	WEIGHT8
	VPSRAD  $31, Y4, Y1
	VANDPS  Y1, Y0, Y0
	VADDPS  Y0, Y13, Y13
	VMOVUPS Y0, (AX)
	VPADDD  ·one8(SB), Y4, Y4
	ADDQ    DX, AX
	DECQ    CX
	JNZ     weightSome

divide:
	VDIVPS Y13, Y11, Y13
	MOVQ   DI, AX
	MOVQ   R8, CX
	ADDQ   R9, CX

factors:
	VMULPS  (AX), Y13, Y0
	VMOVUPS Y0, (AX)
	ADDQ    DX, AX
	DECQ    CX
	JNZ     factors
	VZEROUPPER
	RET

// func softmaxBack16(slopes, weights unsafe.Pointer, strideSlopes, strideWeights, keys int, scale float32)
TEXT ·softmaxBack16(SB), NOSPLIT, $0-44
	MOVQ         slopes+0(FP), DI
	MOVQ         weights+8(FP), SI
	MOVQ         strideSlopes+16(FP), DX
	MOVQ         strideWeights+24(FP), R8
	MOVQ         keys+32(FP), R9
	VBROADCASTSS scale+40(FP), Y15
	VXORPS       Y0, Y0, Y0
	VXORPS       Y1, Y1, Y1
	MOVQ         DI, AX
	MOVQ         SI, BX
	MOVQ         R9, CX

product:
	VMOVUPS     (AX), Y2
	VMOVUPS     32(AX), Y3
	VFMADD231PS (BX), Y2, Y0
	VFMADD231PS 32(BX), Y3, Y1
	ADDQ        DX, AX
	ADDQ        R8, BX
	DECQ        CX
	JNZ         product

slope:
	VMOVUPS (DI), Y2
	VMOVUPS 32(DI), Y3
	VSUBPS  Y0, Y2, Y2
	VSUBPS  Y1, Y3, Y3
	VMULPS  (SI), Y15, Y4
	VMULPS  32(SI), Y15, Y5
	VMULPS  Y4, Y2, Y2
	VMULPS  Y5, Y3, Y3
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, 32(DI)
	ADDQ    DX, DI
	ADDQ    R8, SI
	DECQ    R9
	JNZ     slope
	VZEROUPPER
	RET

// SUM8 is the sum of the lanes of a register, in all of its lanes.
#define SUM8(y, x, other) \
	VEXTRACTF128 $1, y, other; \
	VADDPS       other, x, x; \
	VHADDPS      x, x, x; \
	VHADDPS      x, x, x

// func normalize8(x, normal, y, inverse, gain, bias unsafe.Pointer, n, width, strideX, strideNormal, strideY int, share, epsilon float32)
TEXT ·normalize8(SB), NOSPLIT, $0-96
	MOVQ   x+0(FP), SI
	MOVQ   normal+8(FP), DI
	MOVQ   y+16(FP), DX
	MOVQ   inverse+24(FP), BX
	MOVQ   gain+32(FP), R8
	MOVQ   bias+40(FP), R9
	MOVQ   n+48(FP), R10
	MOVQ   width+56(FP), R11
	MOVQ   strideX+64(FP), R12
	MOVQ   strideNormal+72(FP), R13
	VMOVSS share+88(FP), X15
	VMOVSS epsilon+92(FP), X14

	// 1, by way of equal integers.
	VPCMPEQD X13, X13, X13
	VPSRLD   $25, X13, X13
	VPSLLD   $23, X13, X13

row:
	VXORPS Y0, Y0, Y0
	XORQ   CX, CX

mean:
	VADDPS (SI)(CX*4), Y0, Y0
	ADDQ   $8, CX
	CMPQ   CX, R11
	JLT    mean
	SUM8(Y0, X0, X1)
	VMULSS       X15, X0, X0
	VBROADCASTSS X0, Y0
	VXORPS       Y2, Y2, Y2
	XORQ         CX, CX

variance:
	VMOVUPS     (SI)(CX*4), Y1
	VSUBPS      Y0, Y1, Y1
	VFMADD231PS Y1, Y1, Y2
	ADDQ        $8, CX
	CMPQ        CX, R11
	JLT         variance
	SUM8(Y2, X2, X1)
	VMULSS       X15, X2, X2
	VADDSS       X14, X2, X2
	VSQRTSS      X2, X2, X2
	VDIVSS       X2, X13, X2
	VMOVSS       X2, (BX)
	VBROADCASTSS X2, Y2
	XORQ         CX, CX

write:
	VMOVUPS     (SI)(CX*4), Y1
	VSUBPS      Y0, Y1, Y1
	VMULPS      Y2, Y1, Y1
	VMOVUPS     Y1, (DI)(CX*4)
	VMOVUPS     (R8)(CX*4), Y3
	VFMADD213PS (R9)(CX*4), Y3, Y1
	VMOVUPS     Y1, (DX)(CX*4)
	ADDQ        $8, CX
	CMPQ        CX, R11
	JLT         write
	ADDQ        R12, SI
	ADDQ        R13, DI
	ADDQ        strideY+80(FP), DX
	ADDQ        $4, BX
	DECQ        R10
	JNZ         row
	VZEROUPPER
	RET

// func normalizeBack8(dy, normal, dx, inverse, gain, dGain, dBias unsafe.Pointer, n, width, strideDY, strideNormal, strideDX int, share float32)
//
// share is −1/width.
TEXT ·normalizeBack8(SB), NOSPLIT, $0-100
	MOVQ   dy+0(FP), SI
	MOVQ   normal+8(FP), DI
	MOVQ   dx+16(FP), DX
	MOVQ   inverse+24(FP), BX
	MOVQ   gain+32(FP), R8
	MOVQ   dGain+40(FP), R9
	MOVQ   dBias+48(FP), R10
	MOVQ   n+56(FP), R12
	MOVQ   width+64(FP), R11
	VMOVSS share+96(FP), X15

row:
	VXORPS Y0, Y0, Y0
	VXORPS Y2, Y2, Y2
	XORQ   CX, CX

sums:
	VMOVUPS     (SI)(CX*4), Y1
	VMULPS      (R8)(CX*4), Y1, Y1
	VADDPS      Y1, Y0, Y0
	VFMADD231PS (DI)(CX*4), Y1, Y2
	ADDQ        $8, CX
	CMPQ        CX, R11
	JLT         sums
	SUM8(Y0, X0, X1)
	SUM8(Y2, X2, X1)
	VMULSS       X15, X0, X0
	VMULSS       X15, X2, X2
	VBROADCASTSS X0, Y0
	VBROADCASTSS X2, Y2
	VBROADCASTSS (BX), Y3
	XORQ         CX, CX

write:
	VMOVUPS     (SI)(CX*4), Y4
	VMOVUPS     (DI)(CX*4), Y5
	VMOVAPS     Y4, Y1
	VFMADD132PS (R8)(CX*4), Y0, Y1
	VFMADD231PS Y2, Y5, Y1
	VFMADD213PS (DX)(CX*4), Y3, Y1
	VMOVUPS     Y1, (DX)(CX*4)
	VADDPS      (R10)(CX*4), Y4, Y6
	VMOVUPS     Y6, (R10)(CX*4)
	VFMADD213PS (R9)(CX*4), Y5, Y4
	VMOVUPS     Y4, (R9)(CX*4)
	ADDQ        $8, CX
	CMPQ        CX, R11
	JLT         write
	ADDQ        strideDY+72(FP), SI
	ADDQ        strideNormal+80(FP), DI
	ADDQ        strideDX+88(FP), DX
	ADDQ        $4, BX
	DECQ        R12
	JNZ         row
	VZEROUPPER
	RET

// func reluBack8(slopes, y unsafe.Pointer, n, width, strideSlopes, strideY int)
TEXT ·reluBack8(SB), NOSPLIT, $0-48
	MOVQ   slopes+0(FP), DI
	MOVQ   y+8(FP), SI
	MOVQ   n+16(FP), R10
	MOVQ   width+24(FP), R11
	MOVQ   strideSlopes+32(FP), R12
	MOVQ   strideY+40(FP), R13
	VXORPS Y0, Y0, Y0

row:
	XORQ CX, CX

entries:
	VMOVUPS (SI)(CX*4), Y1
	VCMPPS  $0x1e, Y0, Y1, Y1
	VANDPS  (DI)(CX*4), Y1, Y1
	VMOVUPS Y1, (DI)(CX*4)
	ADDQ    $8, CX
	CMPQ    CX, R11
	JLT     entries
	ADDQ    R12, DI
	ADDQ    R13, SI
	DECQ    R10
	JNZ     row
	VZEROUPPER
	RET

// func exchange8(dst, src unsafe.Pointer, to, from int)
//
// Rows are exchanged with columns in pairs of lanes, in fours, and between halves.
TEXT ·exchange8(SB), NOSPLIT, $0-32
	MOVQ       dst+0(FP), DI
	MOVQ       src+8(FP), SI
	MOVQ       to+16(FP), R8
	MOVQ       from+24(FP), R9
	LEAQ       (R9)(R9*2), R10
	LEAQ       (SI)(R9*4), BX
	VMOVUPS    (SI), Y0
	VMOVUPS    (SI)(R9*1), Y1
	VMOVUPS    (SI)(R9*2), Y2
	VMOVUPS    (SI)(R10*1), Y3
	VMOVUPS    (BX), Y4
	VMOVUPS    (BX)(R9*1), Y5
	VMOVUPS    (BX)(R9*2), Y6
	VMOVUPS    (BX)(R10*1), Y7
	VUNPCKLPS  Y1, Y0, Y8
	VUNPCKHPS  Y1, Y0, Y9
	VUNPCKLPS  Y3, Y2, Y10
	VUNPCKHPS  Y3, Y2, Y11
	VUNPCKLPS  Y5, Y4, Y12
	VUNPCKHPS  Y5, Y4, Y13
	VUNPCKLPS  Y7, Y6, Y14
	VUNPCKHPS  Y7, Y6, Y15
	VSHUFPS    $0x44, Y10, Y8, Y0
	VSHUFPS    $0xee, Y10, Y8, Y1
	VSHUFPS    $0x44, Y11, Y9, Y2
	VSHUFPS    $0xee, Y11, Y9, Y3
	VSHUFPS    $0x44, Y14, Y12, Y4
	VSHUFPS    $0xee, Y14, Y12, Y5
	VSHUFPS    $0x44, Y15, Y13, Y6
	VSHUFPS    $0xee, Y15, Y13, Y7
	VPERM2F128 $0x20, Y4, Y0, Y8
	VPERM2F128 $0x20, Y5, Y1, Y9
	VPERM2F128 $0x20, Y6, Y2, Y10
	VPERM2F128 $0x20, Y7, Y3, Y11
	VPERM2F128 $0x31, Y4, Y0, Y12
	VPERM2F128 $0x31, Y5, Y1, Y13
	VPERM2F128 $0x31, Y6, Y2, Y14
	VPERM2F128 $0x31, Y7, Y3, Y15
	LEAQ       (R8)(R8*2), R10
	LEAQ       (DI)(R8*4), BX
	VMOVUPS    Y8, (DI)
	VMOVUPS    Y9, (DI)(R8*1)
	VMOVUPS    Y10, (DI)(R8*2)
	VMOVUPS    Y11, (DI)(R10*1)
	VMOVUPS    Y12, (BX)
	VMOVUPS    Y13, (BX)(R8*1)
	VMOVUPS    Y14, (BX)(R8*2)
	VMOVUPS    Y15, (BX)(R10*1)
	VZEROUPPER
	RET

// func adamw8(params, gradient, m, v, average unsafe.Pointer, n int, rates *[10]float32)
//
// The rates are those of type rates.
TEXT ·adamw8(SB), NOSPLIT, $0-56
	MOVQ         params+0(FP), DI
	MOVQ         gradient+8(FP), SI
	MOVQ         m+16(FP), R8
	MOVQ         v+24(FP), R9
	MOVQ         average+32(FP), R10
	MOVQ         n+40(FP), R11
	MOVQ         rates+48(FP), AX
	VBROADCASTSS (AX), Y6
	VBROADCASTSS 4(AX), Y7
	VBROADCASTSS 8(AX), Y8
	VBROADCASTSS 12(AX), Y9
	VBROADCASTSS 16(AX), Y10
	VBROADCASTSS 20(AX), Y11
	VBROADCASTSS 24(AX), Y12
	VBROADCASTSS 28(AX), Y13
	VBROADCASTSS 32(AX), Y14
	VBROADCASTSS 36(AX), Y15
	XORQ         CX, CX

entries:
	VMOVUPS      (SI)(CX*4), Y0
	VMULPS       (R8)(CX*4), Y6, Y1
	VFMADD231PS  Y7, Y0, Y1
	VMOVUPS      Y1, (R8)(CX*4)
	VMULPS       Y0, Y0, Y0
	VMULPS       (R9)(CX*4), Y8, Y2
	VFMADD231PS  Y9, Y0, Y2
	VMOVUPS      Y2, (R9)(CX*4)
	VMULPS       Y11, Y2, Y2
	VSQRTPS      Y2, Y2
	VADDPS       Y12, Y2, Y2
	VMULPS       Y10, Y1, Y1
	VDIVPS       Y2, Y1, Y1
	VMOVUPS      (DI)(CX*4), Y3
	VFMADD231PS  Y13, Y3, Y1
	VFNMADD231PS Y14, Y1, Y3
	VMOVUPS      Y3, (DI)(CX*4)
	VMOVUPS      (R10)(CX*4), Y4
	VSUBPS       Y4, Y3, Y3
	VFMADD231PS  Y15, Y3, Y4
	VMOVUPS      Y4, (R10)(CX*4)
	ADDQ         $8, CX
	CMPQ         CX, R11
	JLT          entries
	VZEROUPPER
	RET
