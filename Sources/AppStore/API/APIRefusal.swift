/// A request that Apple would refuse and that was not sent.
public struct APIRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// Apple's own number for the rule.
    public var rule: AppleErrorCode
    /// What stands there and what is wanted.
    public var message: String

    /// Makes a refusal.
    public init(_ rule: AppleErrorCode, _ message: String) {
        self.rule = rule
        self.message = message
    }

    /// The rule's name, as Apple spells it.
    public var ruleName: String { rule.name ?? "\(rule.rawValue)" }

    /// The rule's name and the message.
    public var description: String { "\(ruleName): \(message)" }
}
