internal import AppStore
internal import EventLog
internal import Ledger
internal import Postgres

/// What is to become of a document that Apple signed for one of our apps.
enum Admission: Sendable {
    /// An event of the log.
    case event(NewEvent, isUnrecognised: Bool)
    /// An event whose app is to be found by its stream, since the document names none.
    case unattributed(NewEvent, isUnrecognised: Bool)
    /// Kept as it is: it lacks what an event of its kind needs.
    case quarantine(QuarantinedDocument, detail: String)
}

extension Admission {
    /// The same with what of its event needs no database made on this thread.
    consuming func prepared() -> Admission {
        guard case .event(var event, let isUnrecognised) = self else { return self }
        event.prepareEvidence()
        return .event(event, isUnrecognised: isUnrecognised)
    }

    /// Decides where a verified document belongs: its stream, its key, its kind.
    ///
    /// - A purchase's facts go to the stream of its `originalTransactionId`; the summary of a mass
    ///   extension to `mass:<requestIdentifier>`; whatever belongs to no purchase (a test, an
    ///   external purchase token, a withdrawn consent) to `app:<bundle id>`.
    /// - A notification's key is its UUID, by which Apple's repeats are known; any other document's
    ///   is the digest of its content without `signedDate`, since Apple signs every answer anew.
    ///
    /// - Parameters:
    ///   - document: what was verified.
    ///   - body: the body that it was posted in, if it was.
    init(_ document: VerifiedDocument, postedIn body: [UInt8]? = nil) {
        let bundleID = document.bundleID ?? ""
        let app = AppKey(bundleID: bundleID, environment: document.environment)
        let mass = document.payload["summary"]?["requestIdentifier"]?.text.map { "mass:\($0)" }
        let stream = document.originalTransactionID ?? mass ?? "app:\(bundleID)"
        let key =
            document.notificationUUID.map { "n:\($0)" }
            ?? "t:\(hexadecimal(document.contentDigest))"
        if let reason = document.quarantineReason {
            let quarantined = QuarantinedDocument(
                received: document.received,
                reason: reason,
                app: document.bundleID == nil ? nil : app,
                stream: document.originalTransactionID,
                eventKey: key
            )
            let what = document.notificationType ?? document.kind.rawValue
            self = .quarantine(
                quarantined,
                detail: "\(what) without what every one of its kind has"
            )
            return
        }
        var event = NewEvent(
            app: app,
            stream: stream,
            eventKey: key,
            kind: document.kind.eventKind,
            notificationType: document.notificationType,
            subtype: document.subtype,
            signedAt: document.signedDate,
            received: document.received,
            form: .jws,
            layers: document.layers.map { layer in
                EvidenceLayer(
                    headerDigest: layer.headerDigest,
                    anchorFingerprint: layer.anchorFingerprint,
                    anchorDER: layer.anchorDER
                )
            },
            contentDigest: document.contentDigest,
            fact: document.fact,
            decodeAnomalies: document.decodeAnomalies
        )
        event.posted = body.flatMap { PostedBody($0, around: document.received) }
        event.rescindsConsentOf = document.rescindsConsentOf
        let isUnrecognised = document.isUnrecognised
        self =
            document.bundleID == nil
            ? .unattributed(event, isUnrecognised: isUnrecognised)
            : .event(event, isUnrecognised: isUnrecognised)
    }
}

extension Admission {
    /// The bundle ids of the apps that have a stream in the environment of an event that names none.
    static func owners(
        of event: NewEvent,
        _ connection: Connection
    ) throws(PostgresError) -> Set<String> {
        let rows = try connection.query(
            """
            select distinct app.bundle_id
            from ledger.event join ledger.app using (app_id)
            where event.stream = $1 and app.environment = $2
            """,
            [.text(event.stream), .text("\(event.app.environment)")]
        )
        return Set((0..<rows.count).compactMap { rows.text($0, 0) })
    }
}

/// Bytes as hexadecimal digits in lower case.
func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
}
