/// What was asked of a fake App Store.
struct StoreStatistics: Sendable {
    /// Requests by endpoint and status.
    var requests: [StoreEndpoint: [Int: Int]] = [:]
    /// Refused tokens by reason.
    var refusedTokens: [StoreCredentials.Refusal: Int] = [:]
    /// Requests for what is not there.
    var unknownPaths = 0
}
