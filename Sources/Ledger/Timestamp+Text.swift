extension Timestamp: CustomStringConvertible {
    /// RFC 3339 in UTC with milliseconds, `2025-03-26T13:53:30.000Z`.
    public var description: String {
        let day = milliseconds.floored(by: 86_400_000)
        // The first day of all begins before the first number.
        var rest = milliseconds &- day &* 86_400_000
        let (year, month, dayOfMonth) = Self.civil(daysSince1970: day)
        let hour = rest / 3_600_000
        rest %= 3_600_000
        let minute = rest / 60_000
        rest %= 60_000
        return Self.padded(year, 4) + "-" + Self.padded(Int64(month), 2) + "-"
            + Self.padded(Int64(dayOfMonth), 2) + "T" + Self.padded(hour, 2) + ":"
            + Self.padded(minute, 2) + ":" + Self.padded(rest / 1000, 2) + "."
            + Self.padded(rest % 1000, 3) + "Z"
    }

    /// Reads an INSTANT argument: RFC 3339 with a zone (`2025-03-26T13:53:30Z`, fractions of a
    /// second and offsets allowed), a date (`2025-03-26`, its first instant in UTC), or
    /// milliseconds since 1970 (`1742997210000`).
    ///
    /// Returns nil for anything else and for instants outside 1970…9999.
    public init?(parsing text: String) {
        var scanner = Scanner(text)
        guard let value = scanner.instant(), scanner.isAtEnd else { return nil }
        self.init(milliseconds: value)
        guard isStorable else { return nil }
    }

    /// Days since 1970 of a date in the proleptic Gregorian calendar.
    static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        // Years begin in March, so that the leap day comes last.
        let y = month <= 2 ? year - 1 : year
        let era = y.floored(by: 400)
        let yearOfEra = y - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
            - 719_468
    }

    /// The date of a day counted from 1970.
    static func civil(daysSince1970 days: Int64) -> (year: Int64, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = shifted.floored(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, Int(month), Int(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1))
    }

    private static func padded(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Timestamp {
    /// Reads digits and marks off a text.
    private struct Scanner {
        private var rest: Substring.UTF8View

        init(_ text: String) { rest = Substring(text).utf8 }

        var isAtEnd: Bool { rest.isEmpty }

        mutating func take(_ characters: String) -> Bool {
            guard let first = rest.first, characters.utf8.contains(first) else { return false }
            rest = rest.dropFirst()
            return true
        }

        mutating func digits(_ allowed: ClosedRange<Int>) -> (value: Int64, count: Int)? {
            let run = rest.prefix { 0x30...0x39 ~= $0 }
            guard allowed.contains(run.count) else { return nil }
            rest = rest.dropFirst(run.count)
            return (run.reduce(0) { $0 * 10 + Int64($1 - 0x30) }, run.count)
        }

        mutating func number(_ width: Int, in range: ClosedRange<Int64>) -> Int64? {
            guard let (value, _) = digits(width...width), range.contains(value) else { return nil }
            return value
        }

        mutating func instant() -> Int64? {
            guard let (leading, count) = digits(1...15) else { return nil }
            if isAtEnd { return leading }
            guard count == 4, take("-"), let month = number(2, in: 1...12), take("-"),
                let day = number(2, in: 1...31)
            else { return nil }
            let days = Timestamp.days(year: leading, month: month, day: day)
            // 31 April is not a date: reading it back gives another.
            guard Timestamp.civil(daysSince1970: days).day == Int(day) else { return nil }
            if isAtEnd { return days * 86_400_000 }
            guard take("Tt "), let time = timeOfDay(), let offset = offset() else { return nil }
            return days * 86_400_000 + time - offset
        }

        private mutating func timeOfDay() -> Int64? {
            guard let hour = number(2, in: 0...23), take(":"), let minute = number(2, in: 0...59)
            else { return nil }
            var milliseconds = hour * 3_600_000 + minute * 60_000
            if take(":") {
                guard let second = number(2, in: 0...59) else { return nil }
                milliseconds += second * 1000
            }
            if take(".") {
                guard let (fraction, width) = digits(1...9) else { return nil }
                var scaled = fraction
                var digits = width
                while digits > 3 {
                    scaled /= 10
                    digits -= 1
                }
                while digits < 3 {
                    scaled *= 10
                    digits += 1
                }
                milliseconds += scaled
            }
            return milliseconds
        }

        private mutating func offset() -> Int64? {
            if take("Zz") { return 0 }
            let sign: Int64
            if take("+") { sign = 1 } else if take("-") { sign = -1 } else { return nil }
            guard let hours = number(2, in: 0...23), take(":"),
                let minutes = number(2, in: 0...59)
            else { return nil }
            return sign * (hours * 3_600_000 + minutes * 60_000)
        }
    }
}

extension Int64 {
    /// Division that rounds towards minus infinity.
    fileprivate func floored(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
