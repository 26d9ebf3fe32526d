/// What stays the same for one subscription chain, and the JSON of what Apple says about it.
public struct Chain: Hashable, Sendable {
    /// Apple's `originalTransactionId`.
    public var originalTransactionID: String
    /// Apple's `originalPurchaseDate`, ms since 1970.
    public var originalPurchaseDate: Int64
    /// Apple's `bundleId`.
    public var bundleID: String
    /// Apple's `appAppleId`.
    public var appAppleID: Int64?
    /// Apple's `environment`.
    public var environment: String
    /// Apple's `subscriptionGroupIdentifier`.
    public var groupID: String
    /// Apple's `appAccountToken`.
    public var appAccountToken: String?
    /// Apple's `appTransactionId`.
    public var appTransactionID: String
    /// Where the customer's account lives.
    public var storefront: Storefront
    /// Apple's `inAppOwnershipType`.
    public var ownership = "PURCHASED"
    /// Apple's `previousOriginalTransactionId`: the chain that this one goes on with.
    public var previousOriginalTransactionID: String?

    /// A storefront and its currency.
    public struct Storefront: Hashable, Sendable {
        /// Apple's `storefront`, ISO 3166-1 alpha-3.
        public var code: String
        /// Apple's `storefrontId`.
        public var id: String
        /// ISO 4217.
        public var currency: String

        /// Makes a storefront.
        public init(code: String, id: String, currency: String) {
            self.code = code
            self.id = id
            self.currency = currency
        }

        /// The United States.
        public static let usa = Storefront(code: "USA", id: "143441", currency: "USD")
    }

    /// Makes a chain of the simulated app in the sandbox.
    public init(
        originalTransactionID: String,
        originalPurchaseDate: Int64,
        bundleID: String = "com.example.subledger",
        appAppleID: Int64? = 1_234_567_890,
        environment: String = "Sandbox",
        groupID: String = "20001001",
        appAccountToken: String? = nil,
        appTransactionID: String = "704000000000000001",
        storefront: Storefront = .usa
    ) {
        self.originalTransactionID = originalTransactionID
        self.originalPurchaseDate = originalPurchaseDate
        self.bundleID = bundleID
        self.appAppleID = appAppleID
        self.environment = environment
        self.groupID = groupID
        self.appAccountToken = appAccountToken
        self.appTransactionID = appTransactionID
        self.storefront = storefront
    }
}
