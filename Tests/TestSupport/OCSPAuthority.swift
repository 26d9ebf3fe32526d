package import Crypto
internal import Glibc

/// A certificate authority whose certificates can be taken back, and which says so when asked:
/// `openssl ocsp` answers, so that both ends are not ours.
package final class OCSPAuthority: Sendable {
    /// Who has issued a certificate, and so who answers for it.
    package enum Issuer: String, CaseIterable, Sendable {
        case root
        case intermediate
    }

    /// Who signs an answer.
    package enum Signer: Sendable {
        /// The issuer itself.
        case issuer
        /// Somebody whom the issuer certified to answer, as Apple does.
        case delegate
        /// Somebody whom it certified for something else.
        case other
    }

    private let folder: String
    private let keys: [Issuer: CertificateIssuer]
    /// Leaf, intermediate and root, DER.
    package let chain: [[UInt8]]
    /// The leaf's key.
    package let key: SigningKey

    /// Makes one whose certificates say that `url`, with the issuer's name after it, answers.
    package init(url: String, leafMarker: String, intermediateMarker: String) throws {
        folder = try TestFolder.make()
        TestFolder.watch(folder)
        let now = Int64(time(nil))
        func issuer(_ name: Issuer) -> CertificateIssuer {
            CertificateIssuer(
                name: CertificateName(commonName: "OCSP Test \(name.rawValue)"),
                key: .generateP384()
            )
        }
        let root = issuer(.root)
        let intermediate = issuer(.intermediate)
        keys = [.root: root, .intermediate: intermediate]
        func template(_ name: CertificateName, _ serial: UInt8) -> CertificateTemplate {
            CertificateTemplate(
                subject: name,
                serial: [serial],
                notBefore: now - 86_400,
                notAfter: now + 86_400
            )
        }
        var top = template(root.name, 1)
        top.isAuthority = true
        top.keyUsage = [.certificateSign]
        var middle = template(intermediate.name, 2)
        middle.isAuthority = true
        middle.keyUsage = [.certificateSign]
        middle.markerOIDs = [intermediateMarker]
        middle.ocspURL = "\(url)/\(Issuer.root.rawValue)"
        var leaf = template(CertificateName(commonName: "OCSP Test leaf"), 3)
        leaf.markerOIDs = [leafMarker]
        leaf.ocspURL = "\(url)/\(Issuer.intermediate.rawValue)"
        key = .generateP256()
        chain = [
            intermediate.issue(leaf, for: key), root.issue(middle, for: intermediate.key),
            root.issue(top, for: root.key),
        ]
        for (name, certificate) in [(Issuer.root, chain[2]), (.intermediate, chain[1])] {
            try write("\(name.rawValue).pem", PEM.certificate(certificate))
            try write("\(name.rawValue).key", keys[name]?.key.pem ?? "")
            for (signer, purpose) in [("delegate", [0x09 as UInt8]), ("other", [0x08])] {
                let own = SigningKey.generateP256()
                var answering = template(CertificateName(commonName: "OCSP \(signer)"), 9)
                // Extended key usage: one of id-kp, 9 for OCSP and 8 for time stamps.
                answering.extensions = [
                    CertificateExtension(
                        oid: "2.5.29.37",
                        value: [0x30, 10, 0x06, 8, 0x2b, 6, 1, 5, 5, 7, 3] + purpose
                    )
                ]
                let issued = keys[name]?.issue(answering, for: own) ?? []
                try write("\(name.rawValue)-\(signer).pem", PEM.certificate(issued))
                try write("\(name.rawValue)-\(signer).key", own.pem)
            }
        }
    }

    /// What an issuer answers to a question.
    ///
    /// - Parameters:
    ///   - question: the request, DER.
    ///   - issuer: who answers.
    ///   - isRevoked: whether the certificate was taken back.
    ///   - signer: who signs.
    ///   - knows: whether the issuer knows the certificate at all.
    /// - Returns: the answer, DER.
    /// - Throws: where `openssl` fails.
    package func answer(
        _ question: [UInt8],
        by issuer: Issuer,
        isRevoked: Bool = false,
        signedBy signer: Signer = .delegate,
        knows: Bool = true
    ) throws -> [UInt8] {
        let serial = !knows ? "77" : issuer == .root ? "02" : "03"
        let entry =
            isRevoked
            ? "R\t491231235959Z\t200101000000Z\t\(serial)\tunknown\t/CN=x"
            : "V\t491231235959Z\t\t\(serial)\tunknown\t/CN=x"
        let name = issuer.rawValue
        let run = "\(name)-\(UInt32.random(in: .min ... .max))"
        try write("\(run).index", entry + "\n")
        try write(bytes: question, to: "\(run).question")
        let by =
            switch signer {
            case .issuer: name
            case .delegate: "\(name)-delegate"
            case .other: "\(name)-other"
            }
        let command = """
            cd \(folder) && openssl ocsp -index \(run).index -CA \(name).pem -rsigner \(by).pem \
            -rkey \(by).key -ndays 1 -reqin \(run).question -respout \(run).answer >/dev/null 2>&1
            """
        guard unsafe system(command) == 0 else {
            throw Failure(message: "openssl ocsp does not answer")
        }
        guard let file = unsafe fopen("\(folder)/\(run).answer", "rb") else {
            throw Failure(message: "openssl ocsp wrote no answer")
        }
        defer { unsafe fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = unsafe fread(&bytes, 1, bytes.count, file)
        return Array(bytes[..<count])
    }

    private struct Failure: Error {
        var message: String
    }

    private func write(_ name: String, _ text: String) throws {
        try write(bytes: Array(text.utf8), to: name)
    }

    private func write(bytes: [UInt8], to name: String) throws {
        guard let file = unsafe fopen("\(folder)/\(name)", "wb") else {
            throw Failure(message: "\(name) cannot be written: \(errno)")
        }
        defer { unsafe fclose(file) }
        guard unsafe fwrite(bytes, 1, bytes.count, file) == bytes.count else {
            throw Failure(message: "\(name) cannot be written whole")
        }
    }
}
