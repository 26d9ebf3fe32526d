internal import Crypto
internal import Ledger

/// A certificate chain that was found good, apart from the dates.
final class VerifiedChain: Sendable {
    let leafKey: PublicKey
    let anchor: Anchor
    /// SHA-256 of the header in base64url.
    let headerDigest: [UInt8]
    /// The certificates with what to call them, leaf first.
    private let certificates: [(name: String, certificate: Certificate)]
    /// When all of them are valid.
    private let validSeconds: (first: Int64, last: Int64)

    init(leaf: Certificate, intermediate: Certificate, anchor: Anchor, headerDigest: [UInt8]) {
        leafKey = leaf.publicKey
        self.anchor = anchor
        self.headerDigest = headerDigest
        certificates = [
            ("leaf", leaf), ("intermediate", intermediate), ("root", anchor.certificate),
        ]
        validSeconds = (
            certificates.map(\.certificate.notBeforeSeconds).max() ?? .max,
            certificates.map(\.certificate.notAfterSeconds).min() ?? .min
        )
    }

    /// The certificates that somebody else issued, each with its issuer, leaf first.
    var issuedCertificates: [(name: String, certificate: Certificate, issuer: Certificate)] {
        zip(certificates, certificates.dropFirst()).map { issued, issuer in
            (issued.name, issued.certificate, issuer.certificate)
        }
    }

    /// Throws unless all certificates were valid at the instant; asked at every use.
    func checkDates(at instant: Timestamp) throws(Rejection) {
        let seconds = instant.seconds
        if validSeconds.first <= seconds, seconds <= validSeconds.last { return }
        let culprit = certificates.first { !$0.certificate.isValid(atSeconds: seconds) }
        throw Rejection(
            reason: .certificateDates,
            detail: "the \(culprit?.name ?? "leaf") certificate was not valid at signedDate "
                + "\(instant.milliseconds)"
        )
    }
}
