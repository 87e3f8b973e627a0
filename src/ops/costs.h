#pragma once
// What operators take, in nanoseconds per element, step or word on one thread: kernels/costs.h says what for, and where
// the numbers come from.

namespace treadle::costs {

// --- Attention

inline constexpr double kAttentionScoreNs = 0.32;        // "score of attention"
inline constexpr double kAttentionProductNs = 0.02;      // "product of attention"
inline constexpr double kCausalConvTapNs = 0.15;         // "tap of a causal convolution"
inline constexpr double kLinearAttentionStepNs = 0.073;  // "element of a state of linear attention, in a pass"
inline constexpr double kRotaryElementNs = 0.5;          // "element rotated"

// --- Searching for tokens

inline constexpr double kNgramHashNs = 2.9;         // "hash of an n-gram"
inline constexpr double kNgramBlockTokenNs = 0.11;  // "token of an n-gram, compared"
inline constexpr double kTokenScoreCopyNs = 0.34;   // "score of a token, copied"
inline constexpr double kTokenScoreNs = 0.5;        // "score of a token, changed"

// --- Images

inline constexpr double kAffineGridPointNs = 1.3;     // "point of an affine grid"
inline constexpr double kCropElementNs = 31;          // "element of a crop, resized"
inline constexpr double kGridSampleLocateNs = 25;     // "point of a grid, located"
inline constexpr double kGridSampleTapNs = 0.62;      // "tap of a grid sample"
inline constexpr double kMaxRoiBinNs = 1.5;           // "bin of a MaxRoiPool"
inline constexpr double kMaxRoiElementNs = 0.14;      // "element of a region of a MaxRoiPool"
inline constexpr double kRoiAlignSampleNs = 10;       // "sample of a RoiAlign"
inline constexpr double kRoiAlignKeptNs = 2;          // "sample of a RoiAlign with its weights kept"
inline constexpr double kSuppressionBoxNs = 5;        // "box compared with a box that was kept"
inline constexpr double kResizeTapNs = 0.19;          // "tap of a Resize"
inline constexpr double kCol2ImRunNs = 4.2;           // "run of columns of a Col2Im"
inline constexpr double kCol2ImColumnNs = 0.49;       // "column of a Col2Im"
inline constexpr double kPoolNhwcTapNs = 0.03;        // "tap of a pool with channels last"
inline constexpr double kGlobalPoolElementNs = 0.15;  // "element of a global pool"
inline constexpr double kDeformPlaceNs = 33;          // "place of a deformed kernel"
inline constexpr double kDeformCornerNs = 1;          // "corner of a place of a deformed kernel"

// --- Mathematics

inline constexpr double kCdistStepNs = 0.14;        // "step of a distance of a CDist"
inline constexpr double kWarpingElementNs = 8.4;    // "element of a DynamicTimeWarping"
inline constexpr double kFourierElementNs = 2;      // "element of a pass of a Fourier transform"
inline constexpr double kFourierRootNs = 25;        // "root of unity"
inline constexpr double kMelWeightNs = 1.7;         // "weight of a MelWeightMatrix"
inline constexpr double kMelEdgeNs = 37;            // "edge of a MelWeightMatrix"
inline constexpr double kNumberTextNs = 100;        // "number read or printed"
inline constexpr double kWindowElementNs = 15;      // "element of a window function"
inline constexpr double kDetElementNs = 0.28;       // "element eliminated"
inline constexpr double kDetMatrixNs = 50;          // "matrix of a Det"
inline constexpr double kOptimizerElementNs = 4.7;  // "element of a step of an optimizer"

// --- Machine learning (ai.onnx.ml)

inline constexpr double kBinarizedElementNs = 0.29;  // "element of a Binarizer"
inline constexpr double kFeaturePickNs = 3;          // "element of an ArrayFeatureExtractor"
inline constexpr double kFeaturePartNs = 6.3;        // "row of an input of a FeatureVectorizer"
inline constexpr double kTreeStepNs = 2;             // "step down a tree"
inline constexpr double kLabelFindNs = 15;           // "label looked up"
inline constexpr double kPredictedRowNs = 5.4;       // "row predicted, apart from its model"
inline constexpr double kSvmTermNs = 0.3;            // "feature of a support vector"
inline constexpr double kSvmFunctionNs = 1.8;        // "kernel function of a support vector"
inline constexpr double kDictFindNs = 49;            // "key of a DictVectorizer"
inline constexpr double kCastMapEntryNs = 54;        // "entry of a CastMap"
inline constexpr double kZipMapNs = 200;             // "map of a ZipMap"

// --- Networks

inline constexpr double kDropoutElementNs = 2;       // "element of a Dropout"
inline constexpr double kDropoutMaskNs = 0.5;        // "element of a mask of a Dropout that drops nothing"
inline constexpr double kLossLabelNs = 20;           // "label of a loss"
inline constexpr double kBatchNormElementNs = 0.59;  // "element of the statistics of a BatchNormalization"
inline constexpr double kRowElementNs = 0.33;        // "element of a row, scaled and shifted"
inline constexpr double kLrnPowerNs = 6.5;           // "power of an LRN"
inline constexpr double kSkipNormElementNs = 0.42;   // "element of a SkipLayerNormalization"
inline constexpr double kSoftmaxElementNs = 0.38;    // "element of a Softmax"
inline constexpr double kCellLaneNs = 2;             // "lane of a recurrent cell, all gates"

// --- Quantisation

inline constexpr double kByteMappedNs = 0.76;        // "byte looked up in a table"
inline constexpr double kDynamicQuantizedNs = 0.38;  // "element of a DynamicQuantizeLinear"
inline constexpr double kQuantizedElementNs = 0.2;   // "element of a QuantizeLinear"
inline constexpr double kUnpackedNumberNs = 3.2;     // "number of a block, unpacked"
inline constexpr double kByteProductNs = 0.003;      // "product of bytes"
inline constexpr double kBlockWeightNs = 0.033;      // "weight of a MatMulNBits, made a float"
inline constexpr double kBlockProductNs = 0.02;      // "product of a MatMulNBits"
inline constexpr double kHashedByteNs = 1.5;         // "byte of a scale, hashed"

// --- Random numbers

inline constexpr double kUniformNs = 0.5;           // "uniform number"
inline constexpr double kNormalNs = 1.2;            // "normal number"
inline constexpr double kBernoulliNs = 2;           // "element of a Bernoulli"
inline constexpr double kMultinomialClassNs = 3.3;  // "class of a Multinomial, in a pass"
inline constexpr double kMultinomialDrawNs = 80;    // "number drawn by a Multinomial"

// --- Selecting elements

inline constexpr double kIndexNs = 0.95;           // "index looked up"
inline constexpr double kSelectedElementNs = 1.7;  // "element looked at, and perhaps kept"
inline constexpr double kUniqueKeyNs = 10;         // "element of a Unique"
inline constexpr double kUniquePlaceNs = 22;       // "key of a Unique, moved to a larger table"
inline constexpr double kUniqueMoveNs = 3;         // "group of a Unique, put in order"
inline constexpr double kUniqueCompareNs = 12;     // "comparison of slices"
inline constexpr double kTopKBoundBlockNs = 6.8;   // "64 elements of a TopK, searched for a bound"
inline constexpr double kTopKFewBlockNs = 20;      // "64 elements of a TopK of few"
inline constexpr double kTopKSomeBlockNs = 27;     // "64 elements of a TopK of some"
inline constexpr double kTopKColumnNs = 0.57;      // "element of a column of a TopK"
inline constexpr double kReversedStepNs = 3;       // "step of a ReverseSequence"
inline constexpr double kSplitPartNs = 150;        // "tensor of a SplitToSequence"
inline constexpr double kRoundedRangeNs = 10;      // "element of a Range of halves"

// --- Texts

inline constexpr double kMurmurHashNs = 4;            // "hash of a number"
inline constexpr double kMurmurCharacterNs = 0.5;     // "character hashed"
inline constexpr double kGramFindNs = 2.7;            // "word looked up by a TfIdfVectorizer"
inline constexpr double kGramPlaceNs = 3;             // "position of a row of a TfIdfVectorizer"
inline constexpr double kGramStepNs = 10;             // "edge followed by a TfIdfVectorizer"
inline constexpr double kGramMaskNs = 0.7;            // "64 positions of a word of an n-gram"
inline constexpr double kRegexCharacterNs = 1.7;      // "character matched by a RegexFullMatch"
inline constexpr double kCaseCharacterNs = 10;        // "character whose case is changed"
inline constexpr double kSplitTextPartNs = 20;        // "part of a StringSplit"
inline constexpr double kSplitCharacterNs = 9;        // "character of a StringSplit"
inline constexpr double kTokenizerTokenNs = 120;      // "token of a Tokenizer"
inline constexpr double kTokenizerCharacterNs = 6.1;  // "character of a Tokenizer"

// --- Constants that passes compute with (opt/)

inline constexpr double kScaledWeightNs = 1.5;    // "weight scaled by its channel"
inline constexpr double kNormalizedWeightNs = 1;  // "weight of a convolution, normalised"
inline constexpr double kTurnedByteNs = 0.92;     // "byte of a matrix, transposed"
inline constexpr double kRoundedWeightNs = 0.57;  // "weight rounded to 16 bits"

}  // namespace treadle::costs
