internal import Ledger

/// What a payload says of whose it is; to be believed only once its signature is checked.
struct Claims {
    let kind: DocumentKind
    /// The object that speaks: the payload itself, or the one within a notification.
    let subject: JSONValue?
    /// The form of a notification, nil for one that is not known and for other kinds.
    var form: EnvelopeForm?
    var bundleID: String?
    var appAppleID: Int64?
    var environmentText: String?

    init(_ payload: JSONDocument) {
        kind = DocumentKind(of: payload)
        switch kind {
        case .transaction, .renewalInfo:
            subject = payload.root
            environmentText = Lenient.text(payload["environment"])
        case .appTransaction:
            subject = payload.root
            environmentText = Lenient.text(payload["receiptType"])
        case .notification:
            form = EnvelopeForm.allCases.first { payload[$0.rawValue]?.kind == .object }
            subject = form.flatMap { payload[$0.rawValue] } ?? Self.unknownEnvelope(payload)
            environmentText = Lenient.text(subject?["environment"])
            if form == .externalPurchaseToken {
                environmentText = Self.environment(ofToken: subject)
            }
        }
        bundleID = Lenient.text(subject?["bundleId"])
        appAppleID = Lenient.integer(subject?["appAppleId"])
    }

    /// The environment, nil where none is named.
    var environment: Environment? { environmentText.map { Environment($0) } }

    /// Whether the text says itself that Apple never signed it.
    var isLocalTestData: Bool {
        environmentText == "Xcode" || environmentText == "LocalTesting"
    }

    /// The object of a form that Apple added after this program was written.
    private static func unknownEnvelope(_ payload: JSONDocument) -> JSONValue? {
        payload.root.members.map(\.value).first { $0["bundleId"] != nil }
    }

    /// An external purchase token names no environment, but its id begins with it.
    private static func environment(ofToken token: JSONValue?) -> String? {
        guard let id = Lenient.text(token?["externalPurchaseId"]) else { return nil }
        return id.hasPrefix("SANDBOX") ? "Sandbox" : "Production"
    }
}

/// What can be made out of a payload that is no proper JSON.
///
/// Only to decide whether such bytes, once their signature was found good, are worth keeping.
enum RawClaims {
    /// The values of all members called `bundleId` at any depth.
    static func bundleIDs(in bytes: [UInt8]) -> Set<String> {
        var found: Set<String> = []
        for start in places(of: "bundleId", in: bytes) where bytes[start] == 0x22 {
            let content = bytes[(start + 1)...].prefix { $0 != 0x22 && $0 != 0x5C }
            found.insert(String(decoding: content, as: UTF8.self))
        }
        return found
    }

    /// The first `signedDate` with digits after it.
    static func signedDate(in bytes: [UInt8]) -> Timestamp? {
        for start in places(of: "signedDate", in: bytes) {
            let digits = bytes[start...].prefix { $0 >= 0x30 && $0 <= 0x39 }
            if let number = Int64(String(decoding: digits, as: UTF8.self)) {
                return Timestamp(milliseconds: number)
            }
        }
        return nil
    }

    /// Where the values of members of that name begin.
    private static func places(of name: String, in bytes: [UInt8]) -> [Int] {
        let pattern = Array("\"\(name)\"".utf8)
        var places: [Int] = []
        var place = 0
        while let quote = bytes[place...].firstIndex(of: 0x22) {
            place = quote + 1
            guard bytes[quote...].starts(with: pattern) else { continue }
            var rest = bytes[(quote + pattern.count)...].drop { $0 <= 0x20 }
            guard rest.popFirst() == UInt8(ascii: ":") else { continue }
            rest = rest.drop { $0 <= 0x20 }
            if !rest.isEmpty { places.append(rest.startIndex) }
        }
        return places
    }
}
