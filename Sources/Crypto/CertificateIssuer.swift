internal import COpenSSL

/// What a certificate is to say; the issuer adds its own name and signature.
///
/// Everything can be set wrongly on purpose, since tests need certificates that must be refused.
public struct CertificateTemplate: Hashable, Sendable {
    /// Whom the certificate names.
    public var subject: CertificateName
    /// The serial number, big-endian.
    public var serial: [UInt8]
    /// The first valid second, since 1970.
    public var notBefore: Int64
    /// The last valid second, since 1970.
    public var notAfter: Int64
    /// What basic constraints say; nil leaves the extension out.
    public var isAuthority: Bool?
    /// How many authorities may follow below this one; nil sets no limit.
    public var pathLength: Int?
    /// What the key may be used for; empty leaves the extension out.
    public var keyUsage: KeyUsage
    /// Marker extensions: object identifiers whose value is an ASN.1 NULL, as Apple's are.
    public var markerOIDs: [String]
    /// Where the issuer answers OCSP; it is never asked for test certificates.
    public var ocspURL: String?
    /// Further extensions.
    public var extensions: [CertificateExtension]

    /// Makes a template for an end-entity certificate without extensions of its own.
    public init(
        subject: CertificateName,
        serial: [UInt8],
        notBefore: Int64,
        notAfter: Int64,
        isAuthority: Bool? = false,
        pathLength: Int? = nil,
        keyUsage: KeyUsage = .digitalSignature,
        markerOIDs: [String] = [],
        ocspURL: String? = nil,
        extensions: [CertificateExtension] = []
    ) {
        self.subject = subject
        self.serial = serial
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.isAuthority = isAuthority
        self.pathLength = pathLength
        self.keyUsage = keyUsage
        self.markerOIDs = markerOIDs
        self.ocspURL = ocspURL
        self.extensions = extensions
    }
}

/// A distinguished name with the attributes that Apple's certificates use.
public struct CertificateName: Hashable, Sendable {
    /// CN.
    public var commonName: String
    /// OU.
    public var organizationalUnit: String?
    /// O.
    public var organization: String?
    /// C, two letters.
    public var country: String?

    /// Makes a name.
    public init(
        commonName: String,
        organizationalUnit: String? = nil,
        organization: String? = nil,
        country: String? = nil
    ) {
        self.commonName = commonName
        self.organizationalUnit = organizationalUnit
        self.organization = organization
        self.country = country
    }

    fileprivate var encoded: [UInt8] {
        func attribute(_ oid: String, _ value: [UInt8]?) -> [UInt8] {
            value.map { DER.set(DER.sequence(DER.objectIdentifier(oid), $0)) } ?? []
        }
        return DER.sequence(
            attribute("2.5.4.3", DER.utf8String(commonName)),
            attribute("2.5.4.11", organizationalUnit.map(DER.utf8String)),
            attribute("2.5.4.10", organization.map(DER.utf8String)),
            attribute("2.5.4.6", country.map(DER.printableString))
        )
    }
}

/// What a certificate's key may be used for.
public struct KeyUsage: OptionSet, Hashable, Sendable {
    /// The bits in the order of RFC 5280, the first one highest.
    public var rawValue: UInt8

    /// Makes a set of bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Signing what is no certificate.
    public static let digitalSignature = KeyUsage(rawValue: 0x80)
    /// Signing certificates.
    public static let certificateSign = KeyUsage(rawValue: 0x04)
    /// Signing revocation lists.
    public static let revocationListSign = KeyUsage(rawValue: 0x02)
}

/// One extension of a certificate.
public struct CertificateExtension: Hashable, Sendable {
    /// Its object identifier, dotted.
    public var oid: String
    /// Whether a reader that does not know it must refuse the certificate.
    public var isCritical: Bool
    /// The DER of its value.
    public var value: [UInt8]

    /// Makes an extension.
    public init(oid: String, isCritical: Bool = false, value: [UInt8]) {
        self.oid = oid
        self.isCritical = isCritical
        self.value = value
    }
}

/// Issues X.509 v3 certificates under one name and key.
public struct CertificateIssuer: Sendable {
    /// The name that goes into `issuer`.
    public var name: CertificateName
    /// The key that signs.
    public var key: SigningKey

    /// Makes an issuer.
    public init(name: CertificateName, key: SigningKey) {
        self.name = name
        self.key = key
    }

    /// Issues a certificate for `subjectKey`, DER.
    ///
    /// With the issuer's own name and key it is a self-signed root.
    public func issue(_ template: CertificateTemplate, for subjectKey: SigningKey) -> [UInt8] {
        let algorithm = DER.sequence(
            DER.objectIdentifier(
                key.curve == .p256 ? "1.2.840.10045.4.3.2" : "1.2.840.10045.4.3.3"
            )
        )
        let body = DER.sequence(
            DER.tagged(0xa0, DER.integer(2)),
            DER.integer(template.serial),
            algorithm,
            name.encoded,
            DER.sequence(DER.time(template.notBefore), DER.time(template.notAfter)),
            template.subject.encoded,
            subjectKey.publicKeyInfo,
            DER.tagged(0xa3, DER.sequence(extensions(of: template, for: subjectKey)))
        )
        return DER.sequence(body, algorithm, DER.bitString(key.signDER(body)))
    }

    private func extensions(of template: CertificateTemplate, for subject: SigningKey) -> [UInt8] {
        var out: [UInt8] = []
        func add(_ oid: String, critical: Bool = false, _ value: [UInt8]) {
            out += DER.sequence(
                DER.objectIdentifier(oid),
                critical ? DER.boolean(true) : [],
                DER.octetString(value)
            )
        }
        if let isAuthority = template.isAuthority {
            let limit = template.pathLength.map { DER.integer($0) } ?? []
            // FALSE is the default and DER leaves defaults out.
            let value = DER.sequence(isAuthority ? DER.boolean(true) : [], limit)
            add("2.5.29.19", critical: true, value)
        }
        let issuerKeyID = keyIdentifier(of: key)
        let subjectKeyID = keyIdentifier(of: subject)
        if issuerKeyID != subjectKeyID {
            add("2.5.29.35", DER.sequence(DER.tagged(0x80, issuerKeyID)))
        }
        if let url = template.ocspURL {
            let access = DER.sequence(
                DER.objectIdentifier("1.3.6.1.5.5.7.48.1"),
                DER.tagged(0x86, Array(url.utf8))
            )
            add("1.3.6.1.5.5.7.1.1", DER.sequence(access))
        }
        add("2.5.29.14", DER.octetString(subjectKeyID))
        if !template.keyUsage.isEmpty {
            let bits = template.keyUsage.rawValue
            let unused = UInt8(bits.trailingZeroBitCount)
            add("2.5.29.15", critical: true, DER.bitString([bits], unusedBits: unused))
        }
        for oid in template.markerOIDs { add(oid, DER.null) }
        for item in template.extensions { add(item.oid, critical: item.isCritical, item.value) }
        return out
    }

    /// The SHA-1 of the public point, as RFC 5280 proposes; a name, not a protection.
    private func keyIdentifier(of key: SigningKey) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 20)
        let point = key.publicPoint
        _ = unsafe SHA1(point, point.count, &digest)
        return digest
    }
}
