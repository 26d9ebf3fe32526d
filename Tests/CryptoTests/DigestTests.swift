import Crypto
import Testing

@Suite struct DigestTests {
    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func theStandardsExamplesHold(_ text: String, _ expected: String) {
        #expect(hex(SHA256.digest(text)) == expected)
        #expect(hex(SHA256.digest(Array(text.utf8)[...])) == expected)
    }

    @Test func piecesGiveTheDigestOfTheWhole() {
        let whole = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for size in [1, 63, 64, 65, 1000] {
            let hasher = SHA256.Hasher()
            var rest = whole[...]
            while !rest.isEmpty {
                hasher.update(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            hasher.update([])
            #expect(hasher.finish() == SHA256.digest(whole))
        }
    }

    @Test func manyThreadsHashAtOnce() async {
        let expected = SHA256.digest("the same")
        let isEqual = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    (0..<500).allSatisfy { _ in SHA256.digest("the same") == expected }
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(isEqual)
    }
}
