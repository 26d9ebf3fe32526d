internal import COpenSSL

/// Multiples of a P-256 key's point, made once, so that its signatures are verified twice as fast.
///
/// Apple signs for months with one leaf. OpenSSL keeps such a table for the curve's generator and
/// takes the long way for a key; here the key is the generator of a group of its own. Everything
/// verified is public, so nothing of this takes equal time. The table is about 150 kB; making it
/// takes as long as some hundred verifications.
@safe final class KeyMultiples: @unchecked Sendable {
    // Safety: neither group is changed after `init`; OpenSSL only reads a group to multiply in it.
    fileprivate let curve: OpaquePointer
    fileprivate let keyed: OpaquePointer

    /// Makes the table; nil for a key that is not on P-256, and where OpenSSL cannot.
    init?(of key: PublicKey) {
        defer { ErrorQueue.clear() }
        guard key.isP256, let curve = unsafe EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)
        else { return nil }
        guard let keyed = unsafe EC_GROUP_dup(curve) else {
            unsafe EC_GROUP_free(curve)
            return nil
        }
        unsafe self.curve = curve
        unsafe self.keyed = keyed
        guard unsafe Self.setGenerator(of: keyed, to: key) else { return nil }
    }

    /// Makes the table and has it judge a signature that is known to be good, and the same of
    /// another digest; nil unless it is right about both.
    convenience init?(of key: PublicKey, agreeingOn signature: [UInt8], digest: [UInt8]) {
        self.init(of: key)
        var otherDigest = digest
        otherDigest[0] ^= 1
        let multiplier = Multiplier(self)
        guard multiplier.isValid(signature: signature, digest: digest),
            !multiplier.isValid(signature: signature, digest: otherDigest)
        else { return nil }
    }

    deinit {
        unsafe EC_GROUP_free(curve)
        unsafe EC_GROUP_free(keyed)
    }

    private static func setGenerator(of group: OpaquePointer, to key: PublicKey) -> Bool {
        var encoded = [UInt8](repeating: 0, count: 65)
        var length = 0
        guard let room = unsafe BN_CTX_new(), let point = unsafe EC_POINT_new(group) else {
            return false
        }
        defer {
            unsafe EC_POINT_free(point)
            unsafe BN_CTX_free(room)
        }
        return unsafe EVP_PKEY_get_octet_string_param(
            key.handle,
            "pub",
            &encoded,
            encoded.count,
            &length
        ) == 1
            // This also asks whether the point lies on the curve.
            && EC_POINT_oct2point(group, point, encoded, length, room) == 1
            && EC_GROUP_set_generator(
                group,
                point,
                EC_GROUP_get0_order(group),
                EC_GROUP_get0_cofactor(group)
            ) == 1
            && shim_make_multiples(group, room) == 1
    }
}

/// Verifies with a table of multiples; used by one thread at a time.
@safe final class Multiplier: @unchecked Sendable {
    // Safety: a `PublicKey` lends it to one thread at a time.
    private let multiples: KeyMultiples
    private let order: OpaquePointer
    private let room: OpaquePointer
    private let r: OpaquePointer
    private let s: OpaquePointer
    private let e: OpaquePointer
    private let x: OpaquePointer
    private let sum: OpaquePointer
    private let part: OpaquePointer

    init(_ multiples: KeyMultiples) {
        guard let order = unsafe EC_GROUP_get0_order(multiples.curve),
            let room = unsafe BN_CTX_new(), let r = unsafe BN_new(), let s = unsafe BN_new(),
            let e = unsafe BN_new(), let x = unsafe BN_new(),
            let sum = unsafe EC_POINT_new(multiples.curve),
            let part = unsafe EC_POINT_new(multiples.curve)
        else { preconditionFailure("out of memory") }
        self.multiples = multiples
        unsafe self.order = order
        unsafe self.room = room
        unsafe (self.r, self.s, self.e, self.x) = (r, s, e, x)
        unsafe (self.sum, self.part) = (sum, part)
    }

    deinit {
        unsafe EC_POINT_free(sum)
        unsafe EC_POINT_free(part)
        unsafe BN_free(r)
        unsafe BN_free(s)
        unsafe BN_free(e)
        unsafe BN_free(x)
        unsafe BN_CTX_free(room)
    }

    /// Whether r‖s is the key's signature of a digest (FIPS 186-5, 6.4.2).
    ///
    /// False also where OpenSSL could not calculate. `inverse` is that of s where it is known.
    func isValid(signature: [UInt8], digest: [UInt8], inverse: [UInt8]? = nil) -> Bool {
        let (curve, keyed) = unsafe (multiples.curve, multiples.keyed)
        let isValid = unsafe signature.withUnsafeBufferPointer { signature in
            unsafe BN_bin2bn(signature.baseAddress, 32, r) != nil
                && BN_bin2bn(signature.baseAddress.map { unsafe $0 + 32 }, 32, s) != nil
                && BN_is_zero(r) == 0 && BN_cmp(r, order) < 0
                && BN_is_zero(s) == 0 && BN_cmp(s, order) < 0
                && BN_bin2bn(digest, 32, e) != nil
                // s becomes its inverse, e and x become the two factors.
                && (inverse.map { unsafe BN_bin2bn($0, 32, s) } ?? BN_mod_inverse(s, s, order, room))
                    != nil
                && BN_mod_mul(e, e, s, order, room) == 1
                && BN_mod_mul(x, r, s, order, room) == 1
                && EC_POINT_mul(curve, sum, e, nil, nil, room) == 1
                && EC_POINT_mul(keyed, part, x, nil, nil, room) == 1
                && EC_POINT_add(curve, sum, sum, part, room) == 1
                && EC_POINT_is_at_infinity(curve, sum) == 0
                && EC_POINT_get_affine_coordinates(curve, sum, x, nil, room) == 1
                && BN_nnmod(x, x, order, room) == 1 && BN_cmp(x, r) == 0
        }
        if !isValid { ErrorQueue.clear() }
        return isValid
    }
}
