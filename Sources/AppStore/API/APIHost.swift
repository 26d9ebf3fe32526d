public import Ledger

/// Where the App Store Server API of one environment is.
public struct APIHost: Hashable, Sendable {
    /// Apple's names changed in May 2026; both are answered.
    public enum Generation: String, Hashable, Sendable, CaseIterable {
        /// `api.storekit.apple.com`, which Apple recommends.
        case current
        /// `api.storekit.itunes.apple.com`, which Apple keeps supporting.
        case itunes
    }

    /// Production or Sandbox.
    public let environment: Environment
    /// The address before the path, without a slash at its end.
    public let baseURL: String

    /// Apple's own host.
    public init(_ environment: Environment, generation: Generation = .current) {
        self.environment = environment
        let name = environment == .production ? "api.storekit" : "api.storekit-sandbox"
        let domain = generation == .current ? "apple.com" : "itunes.apple.com"
        baseURL = "https://\(name).\(domain)"
    }

    /// Another host, such as the fake App Store's; nil where it is no such address.
    ///
    /// It is `https://` with a name, optionally a port and a path; no user, query or fragment.
    /// Plain `http://` is taken for this machine only: every request carries a bearer token.
    public init?(_ environment: Environment, baseURL text: String) {
        var text = text
        while text.hasSuffix("/") { text.removeLast() }
        let isPlain = text.hasPrefix("http://")
        guard isPlain || text.hasPrefix("https://") else { return nil }
        let rest = text.dropFirst(isPlain ? 7 : 8)
        let authority = rest.prefix { $0 != "/" }
        let isWhole = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isWhole, !authority.isEmpty, authority.first != ":",
            !rest.contains(where: { $0 == "@" || $0 == "?" || $0 == "#" })
        else { return nil }
        if isPlain {
            var host = authority[...]
            if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") { host = host[..<colon] }
            guard ["127.0.0.1", "localhost", "[::1]"].contains(String(host)) else { return nil }
        }
        self.environment = environment
        baseURL = text
    }
}
