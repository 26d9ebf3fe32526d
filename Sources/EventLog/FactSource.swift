internal import AppStore
public import Ledger

/// Where facts come from: the version of the decoder, and the decoder itself.
///
/// A row of `ledger.fact` is read only if its decoder is this one's version; any other event is
/// decoded from its evidence anew.
public struct FactSource: Sendable {
    /// The decoder's version, as rows name it.
    public var version: Int16

    /// Decodes the fact of an event from what was received; nil for what is never folded.
    public var fact: @Sendable (StoredEvidence) throws -> Fact?

    /// Makes a source.
    public init(version: Int16, fact: @escaping @Sendable (StoredEvidence) throws -> Fact?) {
        self.version = version
        self.fact = fact
    }

    /// The decoder of this program.
    public static let current = FactSource(version: FactDecoder.version) { evidence in
        let event = evidence.event
        if isNeverFolded(event) { return nil }
        if event.kind == .ownerLinked {
            do {
                if let fact = try OwnerLink.fact(in: evidence.received) { return fact }
            } catch {
                throw unreadable(event, "cannot be decoded: \(error)")
            }
            throw unreadable(event, "names no owner or no instant")
        }
        if ExtensionNote.exists(for: event.kind) {
            do {
                if let note = try ExtensionNote(evidence: evidence.received) { return note.fact }
            } catch {
                throw unreadable(event, "cannot be decoded: \(error)")
            }
            throw unreadable(event, "names no request or no instant")
        }
        if event.kind == .subscriptionStatus {
            if let fact = try? StatusReading.fact(in: evidence.received) { return fact }
            throw unreadable(event, "names no status or no instant")
        }
        if event.kind == .receipt {
            do {
                if let reading = try ReceiptReading(evidence: evidence.received) {
                    return reading.element.fact
                }
            } catch {
                throw unreadable(event, "cannot be decoded: \(error)")
            }
            throw unreadable(event, "names no transaction or no instant")
        }
        let kinds = DocumentKind.allCases
        guard evidence.form == .jws, let kind = kinds.first(where: { $0.eventKind == event.kind })
        else {
            throw unreadable(event, "is of the kind \(event.kind), which has no decoder")
        }
        do {
            let payload = try JSONDocument(CompactJWS(evidence.received).payload)
            let nested = try nestedPayloads(of: payload)
            return FactDecoder.decode(kind: kind, payload: payload, nested: nested).fact
        } catch {
            throw unreadable(event, "cannot be decoded: \(error)")
        }
    }

    /// What has no fact: whole responses, what an operator skips, and what the program itself
    /// records of the rows beside the log.
    private static func isNeverFolded(_ event: StoredEvent) -> Bool {
        switch event.kind {
        case .apiResponse, .eventSkipped: true
        case .unknown: event.provenance == .operator && event.key.stream.hasPrefix("app:")
        default: false
        }
    }

    /// The payloads of the signed texts within a notification.
    private static func nestedPayloads(
        of payload: JSONDocument
    ) throws -> [FactDecoder.NestedPayload] {
        var result: [FactDecoder.NestedPayload] = []
        for field in ["signedTransactionInfo", "signedRenewalInfo"] {
            guard let text = payload["data"]?[field]?.textBytes else { continue }
            let inner = try JSONDocument(CompactJWS(text).payload)
            result.append(FactDecoder.NestedPayload(field: field, payload: inner))
        }
        return result
    }

    /// What a signed document's row says that could not be decoded, or not be kept in a column.
    ///
    /// - Parameters:
    ///   - decoded: what could not be decoded.
    ///   - notificationType: as Apple signed it.
    ///   - subtype: as Apple signed it.
    /// - Returns: the anomalies, those of the decoder first.
    public static func anomalies(
        _ decoded: [String],
        notificationType: String?,
        subtype: String?
    ) -> [String] {
        let columns = [("notification_type", notificationType), ("subtype", subtype)]
        return decoded
            + columns.filter { $0.1?.utf8.contains(0) == true }
            .map { PreparedEvent.notRepresentable($0.0) }
    }

    /// What a signed document's row has beside the fact.
    static func details(
        of evidence: StoredEvidence
    ) throws -> (anomalies: [String], rescindsConsentOf: AppleID?) {
        guard let kind = DocumentKind.allCases.first(where: { $0.eventKind == evidence.event.kind })
        else { return ([], nil) }
        let payload = try JSONDocument(CompactJWS(evidence.received).payload)
        let decoded = FactDecoder.decode(
            kind: kind,
            payload: payload,
            nested: try nestedPayloads(of: payload)
        )
        let anomalies = anomalies(
            decoded.anomalies,
            notificationType: decoded.notificationType,
            subtype: decoded.subtype
        )
        guard decoded.notificationType.map({ NotificationType($0) }) == .rescindConsent,
            let text = ["appData", "data"].lazy.compactMap({ form in
                payload[form]?["signedAppTransactionInfo"]?.textBytes
            }).first
        else { return (anomalies, nil) }
        let inner = try JSONDocument(CompactJWS(text).payload)
        let customer = inner["appTransactionId"]?.text.flatMap { $0.isEmpty ? nil : AppleID($0) }
        return (anomalies, customer)
    }

    private static func unreadable(_ event: StoredEvent, _ what: String) -> EventLogError {
        EventLogError(
            .unreadable,
            "event \(event.position) of \(event.key) \(what)",
            position: event.position
        )
    }
}
