/// A small random generator (SplitMix64) whose numbers are the same everywhere and for ever.
struct SeededRandom: Sendable {
    private var state: UInt64

    /// A generator for one stream of a seed; streams of one seed are independent.
    init(seed: UInt64, stream: UInt64) {
        state = seed &* 0x9E37_79B9_7F4A_7C15
        state ^= Self.mixed(stream &+ 0x9E37_79B9_7F4A_7C15)
        _ = next()
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    private static func mixed(_ value: UInt64) -> UInt64 {
        var value = value
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// A number in `0 ..< bound`.
    mutating func below(_ bound: Int) -> Int {
        precondition(bound > 0, "there is nothing below \(bound)")
        return Int(next() % UInt64(bound))
    }

    /// A number in the closed range.
    mutating func between(_ low: Int64, _ high: Int64) -> Int64 {
        guard low < high else { return low }
        return low + Int64(next() % UInt64(high - low + 1))
    }

    /// True with the given probability.
    mutating func chance(_ probability: Double) -> Bool {
        Double(next() >> 11) * 0x1p-53 < probability
    }

    /// One of the elements.
    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[below(elements.count)]
    }

    /// One of the choices, each as likely as its weight says.
    mutating func weighted<Choice>(_ choices: [(weight: Double, choice: Choice)]) -> Choice {
        let total = choices.reduce(0) { $0 + $1.weight }
        var point = Double(next() >> 11) * 0x1p-53 * total
        for (weight, choice) in choices {
            point -= weight
            if point < 0 { return choice }
        }
        return choices[choices.count - 1].choice
    }
}
