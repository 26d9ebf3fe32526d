internal import Glibc
internal import Synchronization

/// Shows how far a long command is: a bar on a terminal, nothing elsewhere.
///
/// It writes to standard error, so that results can be piped on.
final class ProgressBar: Sendable {
    private struct State {
        var lastNanoseconds: UInt64 = 0
        var isDrawn = false
    }

    private let label: String
    private let unit: String
    private let isShown: Bool
    private let startNanoseconds = monotonicNanoseconds()
    private let state = Mutex(State())

    /// How often it is drawn at most.
    static let intervalNanoseconds: UInt64 = 100_000_000

    /// Makes a bar; it shows itself with the first update.
    init(_ label: String, unit: String, isShown: Bool = Terminal.isError) {
        self.label = label
        self.unit = unit
        self.isShown = isShown
    }

    deinit { clear() }

    /// Draws the bar anew when it is time; any thread may call it.
    ///
    /// - Parameters:
    ///   - fraction: how much is done, 0 to 1; nil where the end is not known.
    ///   - count: how many units were done.
    ///   - step: what is done just now, instead of the bar's own label.
    func update(fraction: Double?, count: Int, step: String? = nil) {
        guard isShown else { return }
        let now = monotonicNanoseconds()
        state.withLock { state in
            guard now - state.lastNanoseconds >= Self.intervalNanoseconds else { return }
            state.lastNanoseconds = now
            state.isDrawn = true
            let text = Self.text(
                label: step ?? label,
                unit: unit,
                fraction: fraction,
                count: count,
                seconds: Double(now - startNanoseconds) / 1e9,
                columns: Terminal.columns
            )
            Self.write("\r\(text)\u{1B}[K")
        }
    }

    /// Takes the bar away.
    func clear() {
        state.withLock { state in
            guard state.isDrawn else { return }
            state.isDrawn = false
            Self.write("\r\u{1B}[K")
        }
    }

    /// The line as it is drawn.
    static func text(
        label: String,
        unit: String,
        fraction: Double?,
        count: Int,
        seconds: Double,
        columns: Int
    ) -> String {
        let rate = seconds > 0 ? Double(count) / seconds : 0
        var right = " \(grouped(count)) \(unit), \(grouped(Int(rate.rounded())))/s"
        guard let fraction = fraction.map({ min(1, max(0, $0)) }) else {
            return String("\(label)\(right)".prefix(columns - 1))
        }
        if fraction > 0.02, seconds > 1 {
            right += ", \(duration(seconds * (1 - fraction) / fraction)) left"
        }
        let percent = String(Int(fraction * 100))
        let padded = String(repeating: " ", count: 3 - percent.count) + percent
        let room = max(5, min(40, columns - label.count - right.count - 9))
        let full = Int(fraction * Double(room))
        let bar =
            String(repeating: "█", count: full) + String(repeating: "░", count: room - full)
        return String("\(label) \(bar) \(padded) %\(right)".prefix(columns - 1))
    }

    private static func write(_ text: String) {
        let bytes = Array(text.utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(2, $0.baseAddress, $0.count) }
    }
}

/// Nanoseconds of a clock that never goes back.
func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// A number with its thousands apart, `12,345`.
func grouped(_ number: some BinaryInteger) -> String {
    var result = ""
    let digits = String(number.magnitude)
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { result += "," }
        result.append(digit)
    }
    return number < 0 ? "-" + result : result
}

/// A length of time for people: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
func duration(_ seconds: Double) -> String {
    if seconds < 10 { return "\(fixed(seconds, 1)) s" }
    let whole = Int(min(seconds, 1e9).rounded())
    if whole < 60 { return "\(whole) s" }
    if whole < 3600 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3600) h \(whole % 3600 / 60) min"
}

/// A number with so many decimals.
func fixed(_ value: Double, _ decimals: Int) -> String {
    let scale = (0..<decimals).reduce(1.0) { product, _ in product * 10 }
    let scaled = Int64((abs(value) * scale).rounded())
    let whole = String(scaled / Int64(scale))
    guard decimals > 0 else { return (value < 0 ? "-" : "") + whole }
    let fraction = String(scaled % Int64(scale))
    let zeros = String(repeating: "0", count: decimals - fraction.count)
    return (value < 0 ? "-" : "") + whole + "." + zeros + fraction
}
