internal import Crypto

/// A received document taken apart, so that what repeats is stored once.
///
/// A notification carries the same three certificates up to three times, twice of that inside
/// base64 of base64. Apart, 20 kB become 1.5 kB. Nothing is lost: the parts are put together
/// again and compared with the received bytes before they are used.
struct EvidenceParts: Equatable, Sendable {
    var codec: EvidenceCodec
    /// The header texts, outer JWS first.
    var headers: [ArraySlice<UInt8>] = []
    /// Where in the outer payload each nested JWS was cut out, in bytes of what is left.
    var cuts: [Int32] = []
    var payloads: [[UInt8]]
    /// 64 bytes for each layer.
    var signatures: [UInt8] = []

    /// The length of an ES256 signature.
    static let signatureLengthBytes = 64

    /// Takes a document apart; `isKnown` says whether a header's anchor is known, so that the
    /// header may be stored on its own.
    init(
        _ received: [UInt8],
        form: ReceivedForm,
        isKnown: (ArraySlice<UInt8>) -> Bool
    ) {
        guard form == .jws else {
            if form == .response {
                let parts = EvidenceParts(response: received, isKnown: isKnown)
                if parts.recomposes(received) {
                    self = parts
                    return
                }
            }
            self.init(codec: .raw, payloads: [received])
            return
        }
        if let parts = EvidenceParts(decomposing: received, isKnown: isKnown),
            parts.recomposes(received)
        {
            self = parts
        } else {
            self.init(codec: .jws, payloads: [received])
        }
    }

    /// Parts as they were stored.
    init(
        codec: EvidenceCodec,
        headers: [ArraySlice<UInt8>] = [],
        cuts: [Int32] = [],
        payloads: [[UInt8]],
        signatures: [UInt8] = []
    ) {
        self.codec = codec
        self.headers = headers
        self.cuts = cuts
        self.payloads = payloads
        self.signatures = signatures
    }

    /// Takes each signed text of a response apart, and what is nested in it.
    ///
    /// `cuts` holds for each of them: where in the body it was, how many it holds, and where in
    /// its own payload those were.
    private init(response received: [UInt8], isKnown: (ArraySlice<UInt8>) -> Bool) {
        self.init(codec: .response, payloads: [])
        var left: [UInt8] = []
        var signed: [[UInt8]] = []
        var kept = 0
        for range in ByteScan.quotedJWS(in: received) {
            let text = Array(received[range])
            guard let parts = EvidenceParts(decomposing: text, isKnown: isKnown),
                parts.recomposes(text)
            else { continue }
            left.append(contentsOf: received[kept..<range.lowerBound])
            kept = range.upperBound
            cuts += [Int32(left.count), Int32(parts.cuts.count)] + parts.cuts
            headers += parts.headers
            signed += parts.payloads
            signatures += parts.signatures
        }
        left.append(contentsOf: received[kept...])
        payloads = [left] + signed
    }

    private func recomposedResponse() -> [UInt8]? {
        let size = Self.signatureLengthBytes
        guard let left = payloads.first, payloads.count == headers.count + 1,
            signatures.count == headers.count * size
        else { return nil }
        var body: [UInt8] = []
        var from = 0
        var place = 0
        var layer = 0
        while place < cuts.count {
            guard place + 1 < cuts.count else { return nil }
            let at = Int(cuts[place])
            let nested = Int(cuts[place + 1])
            let layers = layer..<(layer + nested + 1)
            guard at >= from, at <= left.count, nested >= 0,
                place + 2 + nested <= cuts.count, layers.upperBound <= headers.count
            else { return nil }
            let parts = EvidenceParts(
                codec: .decomposed,
                headers: Array(headers[layers]),
                cuts: Array(cuts[(place + 2)..<(place + 2 + nested)]),
                payloads: Array(payloads[(layer + 1)..<(layers.upperBound + 1)]),
                signatures: Array(
                    signatures[(layers.lowerBound * size)..<(layers.upperBound * size)]
                )
            )
            guard let text = parts.recomposed() else { return nil }
            body.append(contentsOf: left[from..<at])
            body.append(contentsOf: text)
            from = at
            place += 2 + nested
            layer = layers.upperBound
        }
        guard layer == headers.count else { return nil }
        body.append(contentsOf: left[from...])
        return body
    }

    private init?(decomposing received: [UInt8], isKnown: (ArraySlice<UInt8>) -> Bool) {
        guard let outer = Layer(received[...]), isKnown(outer.header) else { return nil }
        self.init(codec: .decomposed, payloads: [])
        headers = [outer.header]
        signatures = outer.signature
        var left: [UInt8] = []
        left.reserveCapacity(1024)
        var nested: [[UInt8]] = []
        var kept = 0
        for range in ByteScan.quotedJWS(in: outer.payload) {
            guard let layer = Layer(outer.payload[range]), isKnown(layer.header) else { continue }
            left.append(contentsOf: outer.payload[kept..<range.lowerBound])
            kept = range.upperBound
            cuts.append(Int32(left.count))
            headers.append(layer.header)
            nested.append(layer.payload)
            signatures.append(contentsOf: layer.signature)
        }
        left.append(contentsOf: outer.payload[kept...])
        payloads = [left] + nested
    }

    /// The document put together again, or nil where the parts do not fit together.
    func recomposed() -> [UInt8]? {
        if codec == .response { return recomposedResponse() }
        guard codec == .decomposed else { return payloads.first }
        let size = Self.signatureLengthBytes
        guard
            let outer = payloads.first, payloads.count == headers.count,
            cuts.count == headers.count - 1, signatures.count == headers.count * size
        else { return nil }
        var payload: [UInt8] = []
        payload.reserveCapacity(
            outer.count
                + cuts.indices.reduce(0) {
                    $0 + headers[$1 + 1].count + payloads[$1 + 1].count * 4 / 3 + 96
                }
        )
        var from = 0
        for (index, cut) in cuts.enumerated() {
            let at = Int(cut)
            guard at >= from, at <= outer.count else { return nil }
            payload.append(contentsOf: outer[from..<at])
            appendLayer(index + 1, payload: payloads[index + 1], to: &payload)
            from = at
        }
        payload.append(contentsOf: outer[from...])
        var result: [UInt8] = []
        result.reserveCapacity(payload.count * 4 / 3 + headers[0].count + 96)
        appendLayer(0, payload: payload, to: &result)
        return result
    }

    private func recomposes(_ received: [UInt8]) -> Bool {
        recomposed().map { ByteScan.areEqual($0[...], received[...]) } ?? false
    }

    private func appendLayer(_ index: Int, payload: [UInt8], to result: inout [UInt8]) {
        let size = Self.signatureLengthBytes
        result.append(contentsOf: headers[index])
        result.append(UInt8(ascii: "."))
        result.append(contentsOf: Base64URL.encodeBytes(payload))
        result.append(UInt8(ascii: "."))
        let signature = Array(signatures[index * size..<(index + 1) * size])
        result.append(contentsOf: Base64URL.encodeBytes(signature))
    }

    /// One JWS taken apart.
    private struct Layer {
        var header: ArraySlice<UInt8>
        var payload: [UInt8]
        var signature: [UInt8]

        init?(_ text: ArraySlice<UInt8>) {
            let dot = UInt8(ascii: ".")
            guard let first = ByteScan.first(dot, in: text) else { return nil }
            let rest = text[(first + 1)...]
            guard let second = ByteScan.first(dot, in: rest) else { return nil }
            header = text[..<first]
            guard
                !header.isEmpty,
                let payload = Base64URL.decode(rest[..<second]),
                let signature = Base64URL.decode(rest[(second + 1)...]),
                signature.count == EvidenceParts.signatureLengthBytes
            else { return nil }
            self.payload = payload
            self.signature = signature
        }
    }
}
