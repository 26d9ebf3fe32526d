internal import COpenSSL

/// The inverses that verifying several ES256 signatures takes, calculated together.
///
/// An inversion modulo the order is a third of verifying with a table (``KeyMultiples``); several
/// cost one and a few multiplications more. Whoever lacks an inverse here calculates it.
public struct SignatureInverses: Sendable {
    private var inverses: [(signature: [UInt8], inverse: [UInt8])] = []

    /// No inverses.
    public init() {}

    /// The inverses of s of some signatures (r and s, 64 bytes each); none at all where one of
    /// them cannot be a signature.
    public init(of signatures: [[UInt8]]) {
        guard signatures.count > 1,
            signatures.allSatisfy({ $0.count == PublicKey.signatureLengthBytes })
        else { return }
        let numbers = Numbers(signatures.count * 2 + 1)
        defer { ErrorQueue.clear() }
        // The products of the first so many, the numbers themselves, and what goes back over them.
        let (products, own) = (0, signatures.count)
        for (index, signature) in signatures.enumerated() {
            guard numbers.read(signature[32...], into: own + index) else { return }
            let isMultiplied =
                index == 0
                ? numbers.copy(own, to: products)
                : numbers.multiply(products + index - 1, own + index, into: products + index)
            guard isMultiplied else { return }
        }
        let rest = signatures.count * 2
        guard numbers.invert(products + signatures.count - 1, into: rest) else {
            return
        }
        var found: [(signature: [UInt8], inverse: [UInt8])] = []
        for index in signatures.indices.reversed() {
            if index > 0 {
                // What is left is the inverse of this one times those before.
                guard numbers.multiply(rest, products + index - 1, into: products + index),
                    numbers.multiply(rest, own + index, into: rest)
                else { return }
            }
            let inverse = numbers.bytes(index > 0 ? products + index : rest)
            found.append((signatures[index], inverse))
        }
        inverses = found
    }

    /// The inverse of a signature's s, 32 bytes; nil where it was not calculated.
    func inverse(of signature: [UInt8]) -> [UInt8]? {
        inverses.first { $0.signature == signature }?.inverse
    }
}

/// The order of P-256, kept for the life of the process.
@safe private final class Order: @unchecked Sendable {
    // Safety: the group is never changed.
    static let shared = Order()
    let value: OpaquePointer
    private let group: OpaquePointer

    init() {
        guard let group = unsafe EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1),
            let value = unsafe EC_GROUP_get0_order(group)
        else { preconditionFailure("libcrypto lacks a NIST curve") }
        unsafe self.group = group
        unsafe self.value = value
    }
}

/// Some numbers to calculate with modulo the order of P-256, named by their places.
@safe private final class Numbers {
    // Safety: each is made in `init` and freed in `deinit`; the order stays for ever.
    private let order = unsafe Order.shared.value
    private let room: OpaquePointer
    private let numbers: [OpaquePointer]

    init(_ count: Int) {
        guard let room = unsafe BN_CTX_new() else { preconditionFailure("out of memory") }
        unsafe self.room = room
        unsafe numbers = (0..<count).map { _ in
            guard let number = unsafe BN_new() else { preconditionFailure("out of memory") }
            return unsafe number
        }
    }

    deinit {
        for index in unsafe numbers.indices { unsafe BN_free(numbers[index]) }
        unsafe BN_CTX_free(room)
    }

    /// Reads 32 bytes; false for zero and for what is not below the order.
    func read(_ bytes: ArraySlice<UInt8>, into place: Int) -> Bool {
        unsafe BN_bin2bn(Array(bytes), 32, numbers[place]) != nil
            && BN_is_zero(numbers[place]) == 0 && BN_cmp(numbers[place], order) < 0
    }

    func copy(_ from: Int, to place: Int) -> Bool {
        unsafe BN_copy(numbers[place], numbers[from]) != nil
    }

    func multiply(_ a: Int, _ b: Int, into place: Int) -> Bool {
        unsafe BN_mod_mul(numbers[place], numbers[a], numbers[b], order, room) == 1
    }

    func invert(_ a: Int, into place: Int) -> Bool {
        unsafe BN_mod_inverse(numbers[place], numbers[a], order, room) != nil
    }

    func bytes(_ place: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 32)
        _ = unsafe BN_bn2binpad(numbers[place], &bytes, 32)
        return bytes
    }
}
