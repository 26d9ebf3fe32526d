/// Signs notices as Apple does: transaction and renewal info first, then the envelope around them.
public struct NoticeSigner: Sendable {
    /// Whose certificates sign.
    public var authority: TestCertificateAuthority

    /// Makes a signer of an authority.
    public init(authority: TestCertificateAuthority) { self.authority = authority }

    /// A signed notification, compact JWS, each layer with the leaf in use at its `signedDate`.
    ///
    /// The closures may change each payload before it is signed; a test makes any valid or broken
    /// sample that way.
    public func sign(
        _ notice: Notice,
        of chain: Chain,
        changingTransaction: (inout WireValue) -> Void = { _ in },
        changingRenewal: (inout WireValue) -> Void = { _ in },
        changingEnvelope: (inout WireValue) -> Void = { _ in }
    ) -> [UInt8] {
        var transactionInfo: WireValue?
        if let transaction = notice.transaction {
            var payload = chain.payload(transaction)
            changingTransaction(&payload)
            transactionInfo = authority.signer(at: transaction.signedDate).text(payload)
        }
        var renewalInfo: WireValue?
        if let renewal = notice.renewal {
            var payload = chain.payload(renewal)
            changingRenewal(&payload)
            renewalInfo = authority.signer(at: renewal.signedDate).text(payload)
        }
        var appTransactionInfo: WireValue?
        if notice.form == .appData {
            let signed = notice.signedDate
            appTransactionInfo = authority.signer(at: signed)
                .text(chain.appTransaction(signedDate: signed))
        }
        var envelope = chain.payload(
            notice,
            signedTransactionInfo: transactionInfo,
            signedRenewalInfo: renewalInfo,
            signedAppTransactionInfo: appTransactionInfo
        )
        changingEnvelope(&envelope)
        return authority.signer(at: notice.signedDate).sign(envelope)
    }

    /// The line of a file that a notice becomes: what Apple posts, or, for what was read from the
    /// Server API, the bare JWS of the transaction or renewal info.
    public func line(_ notice: Notice, of chain: Chain) -> [UInt8] {
        guard notice.form == .answer else { return Self.line(sign(notice, of: chain)) }
        if let transaction = notice.transaction {
            return authority.signer(at: transaction.signedDate).sign(chain.payload(transaction))
        }
        guard let renewal = notice.renewal else { return [] }
        return authority.signer(at: renewal.signedDate).sign(chain.payload(renewal))
    }

    /// The line that Apple posts and that files hold: `{"signedPayload":"…"}`, without line end.
    public static func line(_ signedPayload: [UInt8]) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(signedPayload.count + 24)
        line += "{\"signedPayload\":\"".utf8
        line += signedPayload
        line += "\"}".utf8
        return line
    }
}

extension Notice {
    /// The first purchase of a chain, for tests that need any well-formed notification.
    public static func initialBuy(
        of chain: Chain,
        productID: String = "premium.monthly",
        days: Int64 = 30,
        uuid: String = "11111111-2222-4333-8444-555555555555"
    ) -> Notice {
        let start = chain.originalPurchaseDate
        let end = start + days * 86_400_000
        return Notice(
            uuid: uuid,
            type: "SUBSCRIBED",
            subtype: "INITIAL_BUY",
            signedDate: start + 2_000,
            status: 1,
            transaction: NoticeTransaction(
                transactionID: chain.originalTransactionID,
                productID: productID,
                purchaseDate: start,
                expiresDate: end,
                reason: .purchase,
                signedDate: start + 1_960
            ),
            renewal: NoticeRenewal(
                productID: productID,
                renewalDate: end,
                recentSubscriptionStartDate: start,
                signedDate: start + 1_940
            )
        )
    }
}
