/// The text form of certificates: base64 between two marks.
public enum PEM {
    private static let begin = "-----BEGIN CERTIFICATE-----"
    private static let end = "-----END CERTIFICATE-----"

    /// Whether some bytes look like a PEM text rather than DER.
    public static func isText(_ bytes: [UInt8]) -> Bool {
        String(decoding: bytes, as: UTF8.self).contains("-----BEGIN ")
    }

    /// The DER bytes of each certificate of a PEM text, in order.
    ///
    /// Text outside the marks is ignored, as other programs do. Throws where a block is cut off or
    /// is no base64, and where there is no certificate at all.
    public static func certificates(_ bytes: [UInt8]) throws(CryptoError) -> [[UInt8]] {
        var certificates: [[UInt8]] = []
        var body: [UInt8]?
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        for rawLine in lines {
            let line = rawLine.drop(while: \.isWhitespace)
            let isMark = line.hasPrefix("-----")
            if isMark, line.hasPrefix(begin) {
                body = []
            } else if isMark, line.hasPrefix(end), let text = body {
                guard let der = Base64.decode(text), !der.isEmpty else {
                    throw CryptoError(code: .badPEM, message: "a certificate is not base64")
                }
                certificates.append(der)
                body = nil
            } else if body != nil {
                body?.append(contentsOf: line.utf8.filter { $0 > 0x20 })
            }
        }
        guard body == nil else {
            throw CryptoError(code: .badPEM, message: "the last certificate is cut off")
        }
        guard !certificates.isEmpty else {
            throw CryptoError(code: .badPEM, message: "there is no certificate in the PEM text")
        }
        return certificates
    }

    /// Writes a certificate as PEM.
    public static func certificate(_ der: [UInt8]) -> String {
        var text = begin + "\n"
        var rest = Base64.encode(der)[...]
        while !rest.isEmpty {
            text += rest.prefix(64) + "\n"
            rest = rest.dropFirst(64)
        }
        return text + end + "\n"
    }
}
