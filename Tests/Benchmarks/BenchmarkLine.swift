/// One figure of a benchmark.
public struct BenchmarkLine: Hashable, Sendable {
    /// What was measured.
    public var name: String
    /// How much of it.
    public var value: Double
    /// The unit of the value.
    public var unit: String
    /// The part of what the machine can do, as measured in the same run; nil without such a bound.
    public var ratio: Double?
    /// What the ratio is of.
    public var bound: String?

    /// Makes a figure.
    public init(
        _ name: String,
        _ value: Double,
        _ unit: String,
        ratio: Double? = nil,
        of bound: String? = nil
    ) {
        self.name = name
        self.value = value
        self.unit = unit
        self.ratio = ratio
        self.bound = bound
    }

    /// The figure as one line for a person.
    public var text: String {
        let number = value < 100 ? Self.decimal(value, places: 1) : String(Int(value.rounded()))
        let padding = String(repeating: " ", count: max(1, 48 - name.count))
        let figure = "\(name)\(padding)\(number) \(unit)"
        guard let ratio, let bound else { return figure }
        return "\(figure)  \(Int((ratio * 100).rounded())) % of \(bound)"
    }

    private static func decimal(_ value: Double, places: Int) -> String {
        var scale = 1.0
        for _ in 0..<places { scale *= 10 }
        return String((value * scale).rounded() / scale)
    }
}
