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
        if event.kind == .apiResponse { return nil }
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

    private static func unreadable(_ event: StoredEvent, _ what: String) -> EventLogError {
        EventLogError(
            .unreadable,
            "event \(event.position) of \(event.key) \(what)",
            position: event.position
        )
    }
}
