/// Whole numbers out of JSON's spelling of numbers.
enum JSONInteger {
    /// The value of a number's spelling.
    ///
    /// `1e3` and `10.0` are whole; `-0` is 0; `1.50` is not whole; `1e400` is too large.
    static func value(of spelling: ArraySlice<UInt8>) throws(AppStoreError) -> Int64 {
        if let plain = plainValue(of: spelling) { return plain }
        var digits: [UInt8] = []
        var exponent = 0
        var isNegative = false
        var rest = spelling
        if rest.first == UInt8(ascii: "-") {
            isNegative = true
            rest.removeFirst()
        }
        var isFraction = false
        while let byte = rest.first {
            rest.removeFirst()
            switch byte {
            case 0x30...0x39:
                digits.append(byte - 0x30)
                if isFraction { exponent -= 1 }
            case UInt8(ascii: "."):
                isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                exponent += exponentValue(of: rest)
                rest = []
            default:
                throw AppStoreError(code: .notAnInteger, message: "this is no number")
            }
        }
        while exponent < 0, digits.last == 0 {
            digits.removeLast()
            exponent += 1
        }
        guard digits.contains(where: { $0 != 0 }) else { return 0 }
        guard exponent >= 0 else {
            throw AppStoreError(code: .notAnInteger, message: "the number is not whole")
        }
        return try value(of: digits, exponent: exponent, isNegative: isNegative)
    }

    /// The value of up to 18 digits and nothing else, which is how Apple spells numbers.
    private static func plainValue(of spelling: ArraySlice<UInt8>) -> Int64? {
        guard spelling.count <= 18 else { return nil }
        var value: Int64 = 0
        for byte in spelling {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            value = value &* 10 &+ Int64(byte &- 0x30)
        }
        return value
    }

    private static func value(
        of digits: [UInt8],
        exponent: Int,
        isNegative: Bool
    ) throws(AppStoreError) -> Int64 {
        let tooLarge = AppStoreError(
            code: .integerOverflow,
            message: "the number does not fit into 64 bits"
        )
        // 10^19 is beyond 64 bits, so more zeros than that need not be appended.
        guard exponent < 20 else { throw tooLarge }
        var value: Int64 = 0
        for place in 0..<(digits.count + exponent) {
            let digit = place < digits.count ? Int64(digits[place]) : 0
            let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, isStillTooLarge) =
                isNegative
                ? product.subtractingReportingOverflow(digit)
                : product.addingReportingOverflow(digit)
            guard !isTooLarge, !isStillTooLarge else { throw tooLarge }
            value = sum
        }
        return value
    }

    /// An exponent, held at a size at which the number has long left 64 bits.
    private static func exponentValue(of spelling: ArraySlice<UInt8>) -> Int {
        let limit = 1_000_000_000
        var value = 0
        for byte in spelling where byte >= 0x30 && byte <= 0x39 {
            value = min(value * 10 + Int(byte - 0x30), limit)
        }
        return spelling.first == UInt8(ascii: "-") ? -value : value
    }
}
