import Crypto
import EventLog
import Ledger

/// Makes events as the verifier would hand them over, without real signatures.
enum Sample {
    static let app = AppKey(bundleID: "com.example.app", environment: .sandbox)

    static let anchorDER = Array("a certificate that vouches".utf8)

    /// A header's text, shorter than with three real certificates.
    static let header = Base64URL.encode(
        Array(#"{"alg":"ES256","x5c":["\#(String(repeating: "MIIB", count: 150))"]}"#.utf8)
    )

    static let otherHeader = Base64URL.encode(
        Array(#"{"alg":"ES256","x5c":["\#(String(repeating: "MIIC", count: 150))"]}"#.utf8)
    )

    static func layer(_ header: String) -> EvidenceLayer {
        EvidenceLayer(
            headerDigest: SHA256.digest(Array(header.utf8)),
            anchorFingerprint: SHA256.digest(anchorDER),
            anchorDER: anchorDER
        )
    }

    /// A compact JWS over any payload.
    static func jws(_ payload: [UInt8], header: String = header, seed: UInt8 = 7) -> String {
        let signature = (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ Int(seed)) }
        return "\(header).\(Base64URL.encode(payload)).\(Base64URL.encode(signature))"
    }

    static func jws(_ payload: String, header: String = header, seed: UInt8 = 7) -> String {
        jws(Array(payload.utf8), header: header, seed: seed)
    }

    /// A notification with a transaction and a renewal info in it.
    static func notification(
        stream: String,
        uuid: String,
        content: String = "",
        app: AppKey = app
    ) -> NewEvent {
        let transaction = jws(
            #"{"transactionId":"\#(stream)","originalTransactionId":"\#(stream)","bundleId":"#
                + #""com.example.app","productId":"gold.month","purchaseDate":1700000000000,"#
                + #""expiresDate":1702592000000,"environment":"Sandbox","#
                + #""type":"Auto-Renewable Subscription","signedDate":1700000000500}"#,
            seed: 1
        )
        let renewal = jws(
            #"{"originalTransactionId":"\#(stream)","autoRenewStatus":1,"#
                + #""signedDate":1700000000500,"environment":"Sandbox"}"#,
            header: otherHeader,
            seed: 2
        )
        let payload =
            #"{"notificationType":"DID_RENEW","notificationUUID":"\#(uuid)","#
            + #""note":"\#(content)","data":{"bundleId":"com.example.app","environment":"#
            + #""Sandbox","signedTransactionInfo":"\#(transaction)","#
            + #""signedRenewalInfo":"\#(renewal)"},"signedDate":1700000000500}"#
        return event(
            stream: stream,
            key: "n:\(uuid)",
            received: Array(jws(payload).utf8),
            content: content,
            app: app
        )
    }

    /// An event over any bytes.
    static func event(
        stream: String,
        key: String,
        received: [UInt8],
        content: String = "",
        app: AppKey = app,
        form: ReceivedForm = .jws
    ) -> NewEvent {
        var fact = Fact(
            kind: .notification,
            provenance: .jws,
            factAt: Timestamp(milliseconds: 1_700_000_000_500)
        )
        fact.notificationType = .didRenew
        fact.transaction = TransactionFact(
            transactionID: AppleID(stream),
            signedDate: Timestamp(milliseconds: 1_700_000_000_500),
            digest: 42
        )
        return NewEvent(
            app: app,
            stream: stream,
            eventKey: key,
            kind: .notification,
            notificationType: "DID_RENEW",
            signedAt: Timestamp(milliseconds: 1_700_000_000_500),
            received: received,
            form: form,
            layers: [layer(header), layer(otherHeader)],
            contentDigest: SHA256.digest(Array("\(key)\(content)".utf8)),
            fact: fact
        )
    }

    /// Notifications of so many streams, two for each.
    static func notifications(_ count: Int, prefix: String = "70") -> [NewEvent] {
        (0..<count).map { index in
            notification(stream: "\(prefix)\(index / 2)", uuid: "\(prefix)-\(index)")
        }
    }
}

extension AppendOutcome {
    /// The position, nil where there is none.
    var position: Int64? {
        switch self {
        case .appended(let position), .duplicate(let position), .conflict(let position): position
        case .quarantined: nil
        }
    }
}
