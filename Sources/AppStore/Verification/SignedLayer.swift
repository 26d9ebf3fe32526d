internal import Crypto
internal import Ledger

/// One signed text whose chain, signature and dates are good, whoever it belongs to.
struct SignedLayer {
    let jws: CompactJWS
    let payload: JSONDocument
    let claims: Claims
    let signedDate: Timestamp
    let chain: VerifiedChain
    /// What was calculated for this text and for those nested in it.
    let inverses: SignatureInverses

    /// Checks a text: format, chain, signature, content, dates, in this order.
    ///
    /// A rejection for what the signature covers says that the signature is good.
    ///
    /// - Parameters:
    ///   - text: a compact JWS.
    ///   - memory: the chains that are known.
    ///   - now: our clock.
    ///   - inverses: what was calculated for the text around this one; nil for the outermost.
    /// - Throws: the reason why it is not good.
    init(
        _ text: [UInt8],
        memory: ChainMemory,
        now: Timestamp,
        inverses: SignatureInverses? = nil
    ) throws(Rejection) {
        jws = try CompactJWS(text)
        let scanned = Self.scan(jws.payload)
        if case .success(let content) = scanned, content.claims.isLocalTestData {
            throw Rejection(
                reason: .localTestData,
                detail: "this is local test data (Xcode or StoreKit testing), not signed by Apple; "
                    + "use Sandbox or TestFlight"
            )
        }
        chain = try memory.chain(header: jws.header, now: now)
        let digest = SHA256.digest(jws.signingInput)
        self.inverses =
            inverses ?? (chain.leafKey.hasTable ? Self.inverses(of: jws, scanned) : .init())
        guard
            chain.leafKey.isValidES256(
                signature: jws.signature,
                digest: digest,
                inverses: self.inverses
            )
        else {
            throw Rejection(
                reason: .badSignature,
                detail: "the signature does not fit the header and payload"
            )
        }
        do throws(Rejection) {
            let rejection: Rejection
            switch scanned {
            case .success(let content):
                (payload, claims) = content
                signedDate = try Self.signedDate(of: payload)
                try chain.checkDates(at: signedDate)
                return
            case .failure(let error):
                rejection = error
            }
            try chain.checkDates(at: RawClaims.signedDate(in: jws.payload) ?? now)
            throw rejection
        } catch {
            var error = error
            error.isSignatureValid = true
            throw error
        }
    }

    /// The inverses for a notification's signature and those nested in it, which nearly always have
    /// the same leaf.
    private static func inverses(
        of jws: CompactJWS,
        _ scanned: Result<(payload: JSONDocument, claims: Claims), Rejection>
    ) -> SignatureInverses {
        guard case .success((let payload, let claims)) = scanned,
            let object = claims.form.flatMap({ payload[$0.rawValue] })
        else { return SignatureInverses() }
        let nested = DocumentKind.nestedFields.compactMap { field, _ in
            object[field]?.textBytes.flatMap(CompactJWS.signature(of:))
        }
        return SignatureInverses(of: [jws.signature] + nested)
    }

    private static func scan(
        _ bytes: [UInt8]
    ) -> Result<(payload: JSONDocument, claims: Claims), Rejection> {
        do throws(AppStoreError) {
            let payload = try JSONDocument(bytes)
            guard payload.root.kind == .object else {
                let rejection = Rejection(reason: .badJSON, detail: "the payload is no object")
                return .failure(IdentityCheck.unreadable(rejection))
            }
            return .success((payload, Claims(payload)))
        } catch {
            let reason = error.code == .duplicateKey ? Reason.duplicateKey : .badJSON
            let rejection = Rejection(
                reason: reason,
                detail: "the payload (\(error.code.rawValue)): \(error)"
            )
            return .failure(IdentityCheck.unreadable(rejection))
        }
    }

    /// When a payload was signed; an app transaction calls it `receiptCreationDate`.
    private static func signedDate(of payload: JSONDocument) throws(Rejection) -> Timestamp {
        let value = payload["signedDate"] ?? payload["receiptCreationDate"]
        guard let milliseconds = Lenient.integer(value) else {
            throw IdentityCheck.unreadable(
                Rejection(
                    reason: .signedDateMissing,
                    detail: "signedDate is missing or is no number of milliseconds"
                )
            )
        }
        return Timestamp(milliseconds: milliseconds)
    }
}
