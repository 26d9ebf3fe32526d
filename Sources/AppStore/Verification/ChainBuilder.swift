internal import Crypto
internal import Synchronization

/// Builds a certificate chain out of a header.
///
/// It costs a millisecond, a hundred times a look-up, and senders are strangers: so whatever can
/// be refused without arithmetic on curves is refused first.
final class ChainBuilder: Sendable {
    private static let leafMarker = "1.2.840.113635.100.6.11.1"
    private static let intermediateMarker = "1.2.840.113635.100.6.2.1"
    /// The longest header that is looked at; Apple's are 4.6 kB.
    static let headerSizeMaxBytes = 32 * 1024

    private let anchors: TrustAnchors
    private let leafMarkerID: ObjectIdentifier?
    private let intermediateMarkerID: ObjectIdentifier?
    /// The intermediates that an anchor has issued, as both fingerprints one after the other: a
    /// new leaf then costs half.
    private let issued = Mutex<Set<[UInt8]>>([])
    private static let issuedMax = 16
    private let rate: ChainRate?

    init(anchors: TrustAnchors, rate: ChainRate?) {
        self.anchors = anchors
        self.rate = rate
        leafMarkerID = ObjectIdentifier(Self.leafMarker)
        intermediateMarkerID = ObjectIdentifier(Self.intermediateMarker)
    }

    /// The chain of a header in base64url.
    func chain(
        header: ArraySlice<UInt8>,
        digest: [UInt8]
    ) throws(Rejection) -> VerifiedChain {
        let certificates = try Self.certificates(header)
        let (leaf, intermediate, third) = (certificates[0], certificates[1], certificates[2])
        try Self.checkKinds(leaf: leaf, intermediate: intermediate)
        let candidates = anchors.candidates(issuerOf: intermediate, third: third)
        guard !candidates.isEmpty else { throw Self.untrustedRoot }
        try checkMarkers(leaf: leaf, intermediate: intermediate)
        // What was refused so far cost little; from here on a curve is reckoned with.
        guard rate?.take() ?? true else {
            throw Rejection(
                reason: .chainLimit,
                detail: "too many certificate chains that were never seen came at once; try later"
            )
        }
        guard let anchor = candidates.first(where: { hasIssued($0, intermediate) }) else {
            // Another authority may have given its root the name of one of ours.
            let endsInAnchor = candidates.contains {
                $0.certificate.fingerprint == third.fingerprint
            }
            guard endsInAnchor else { throw Self.untrustedRoot }
            throw Rejection(
                reason: .brokenChain,
                detail: "the intermediate was not issued by the root"
            )
        }
        guard intermediate.isAuthority, intermediate.maySignCertificates else {
            throw Rejection(
                reason: .brokenChain,
                detail: "the intermediate is no certificate authority"
            )
        }
        guard leaf.issuer == intermediate.subject, leaf.isSigned(by: intermediate) else {
            throw Rejection(
                reason: .brokenChain,
                detail: "the leaf was not issued by the intermediate"
            )
        }
        return VerifiedChain(
            leaf: leaf,
            intermediate: intermediate,
            anchor: anchor,
            headerDigest: digest
        )
    }

    /// The three certificates of a header, leaf first.
    private static func certificates(
        _ header: ArraySlice<UInt8>
    ) throws(Rejection) -> [Certificate] {
        guard header.count <= headerSizeMaxBytes else {
            throw Rejection(
                reason: .tooLarge,
                detail: "the header has \(header.count) bytes, at most \(headerSizeMaxBytes)"
            )
        }
        guard let bytes = Base64URL.decode(header) else { throw CompactJWS.badPart("header") }
        let json: JSONDocument
        do { json = try JSONDocument(bytes) } catch {
            throw Rejection(reason: .badHeader, detail: "the header: \(error)")
        }
        guard json.root.kind == .object else {
            throw Rejection(reason: .badHeader, detail: "the header is no object")
        }
        guard json["alg"]?.text == "ES256" else {
            throw Rejection(reason: .algorithm, detail: "alg is not ES256, the only one allowed")
        }
        guard json["crit"] == nil else {
            throw Rejection(
                reason: .badHeader,
                detail: "crit asks for extensions, none is understood here"
            )
        }
        guard let list = json["x5c"], list.kind == .array else {
            throw Rejection(reason: .badHeader, detail: "x5c is no list of certificates")
        }
        let texts = list.elements
        guard texts.count == 3 else {
            throw Rejection(
                reason: .chainLength,
                detail: "x5c has \(texts.count) certificates, Apple's has three"
            )
        }
        var certificates: [Certificate] = []
        for (place, text) in texts.enumerated() {
            guard let base64 = text.textBytes else {
                throw Rejection(reason: .badHeader, detail: "x5c[\(place)] is no text")
            }
            guard let der = Base64.decode(base64) else {
                throw Rejection(reason: .badCertificate, detail: "x5c[\(place)] is not base64")
            }
            do { certificates.append(try Certificate(der: der)) } catch {
                throw Rejection(
                    reason: .badCertificate,
                    detail: "x5c[\(place)] is no certificate (\(error.message))"
                )
            }
        }
        return certificates
    }

    private static let untrustedRoot = Rejection(
        reason: .untrustedRoot,
        detail: "the chain ends in no trusted root; for test data name its root certificate"
    )

    private static func checkKinds(
        leaf: Certificate,
        intermediate: Certificate
    ) throws(Rejection) {
        guard leaf.publicKey.isP256 else {
            throw Rejection(reason: .badCertificate, detail: "the leaf's key is not on P-256")
        }
        guard leaf.maySignData else {
            throw Rejection(reason: .badCertificate, detail: "the leaf's key may not sign data")
        }
        guard !leaf.hasUnknownCriticalExtension, !intermediate.hasUnknownCriticalExtension else {
            throw Rejection(
                reason: .badCertificate,
                detail: "a critical extension is not understood here"
            )
        }
    }

    private func checkMarkers(
        leaf: Certificate,
        intermediate: Certificate
    ) throws(Rejection) {
        guard let leafMarkerID, leaf.hasExtension(leafMarkerID) else {
            throw Rejection(
                reason: .markerOID,
                detail: "the leaf has no extension \(Self.leafMarker)"
            )
        }
        guard let intermediateMarkerID, intermediate.hasExtension(intermediateMarkerID) else {
            throw Rejection(
                reason: .markerOID,
                detail: "the intermediate has no extension \(Self.intermediateMarker)"
            )
        }
    }

    private func hasIssued(_ anchor: Anchor, _ intermediate: Certificate) -> Bool {
        let key = intermediate.fingerprint + anchor.certificate.fingerprint
        if issued.withLock({ $0.contains(key) }) { return true }
        // A path length of 0 says that no authority may stand below the root.
        guard anchor.certificate.subject == intermediate.issuer,
            anchor.certificate.pathLength ?? 1 >= 1, intermediate.isSigned(by: anchor.certificate)
        else { return false }
        issued.withLock { issued in
            if issued.count >= Self.issuedMax { issued.removeAll() }
            issued.insert(key)
        }
        return true
    }
}
