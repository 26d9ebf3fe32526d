import Glibc

#if LIBFUZZER
// libFuzzer makes inputs up by what the code that they reach looks like.
private let target: FuzzTarget = {
    let name = unsafe getenv("FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
    guard let target = FuzzTarget(rawValue: name) else { fatalError("FUZZ_TARGET names none") }
    return target
}()

private typealias Words = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ words: UnsafeMutablePointer<Words>,
    _ take: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// The package manager calls the main function of a program so.
@_cdecl("Fuzz_main")
public func runFuzzer(
    _ count: CInt,
    _ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> CInt {
    var (count, words) = (count, words)
    return unsafe runDriver(&count, &words, takeInput)
}

/// Takes one input of libFuzzer's.
@_cdecl("LLVMFuzzerTestOneInput")
public func takeInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    unsafe target.run(Array(UnsafeBufferPointer(start: data, count: size)))
    return 0
}
#else
/// Changes the inputs of a corpus by chance, as often as it is told to.
@main
enum FuzzMain {
    static func main() {
        let words = CommandLine.arguments
        guard words.count >= 5, let target = FuzzTarget(rawValue: words[1]),
            let count = Int(words[2]), let seed = UInt64(words[3])
        else { fatalError("usage: Fuzz TARGET COUNT SEED FILE…") }
        let corpus = words[4...].map { contents(of: $0) }
        for input in corpus { target.run(input) }
        var random = SeededGenerator(seed: seed)
        var pool = corpus
        for _ in 0..<count {
            var input = pool.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                Self.mutate(&input, pool, &random)
            }
            last = input
            target.run(input)
            if pool.count < 512, Int.random(in: 0..<64, using: &random) == 0 { pool.append(input) }
        }
        print("\(target.rawValue): \(corpus.count) inputs and \(count) changed ones held")
    }

    /// What is under way, for a debugger.
    nonisolated(unsafe) private static var last: [UInt8] = []

    private static let words = [
        "\"", "{", "}", "[", "]", ",", ":", "\\u0000", "\\ud800", "null", "true", "1e400", "-0",
        "9223372036854775808", ".", "=", "-", "_", "\u{0}", "\u{FEFF}", "\"status\":0,", "eyJ",
        "_ms", "2025-10-09 08:53:20 Etc/GMT", "7001",
    ].map { Array($0.utf8) }

    private static func mutate(
        _ input: inout [UInt8],
        _ pool: [[UInt8]],
        _ random: inout SeededGenerator
    ) {
        let place = Int.random(in: 0...input.count, using: &random)
        let length = Int.random(in: 0...min(32, input.count - place), using: &random)
        switch Int.random(in: 0..<7, using: &random) {
        case 0:
            if place < input.count { input[place] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
        case 1: if place < input.count { input[place] = UInt8.random(in: 0...255, using: &random) }
        case 2: input.removeSubrange(place..<place + length)
        case 3: input.insert(contentsOf: input[place..<place + length], at: place)
        case 4: input.insert(contentsOf: words.randomElement(using: &random) ?? [], at: place)
        case 5:
            let other = pool.randomElement(using: &random) ?? []
            let from = Int.random(in: 0...other.count, using: &random)
            input = Array(input[..<place] + other[from...])
        default: input.insert(UInt8.random(in: 0...255, using: &random), at: place)
        }
        if input.count > 65_536 { input.removeLast(input.count - 65_536) }
    }

    private static func contents(of path: String) -> [UInt8] {
        guard let file = unsafe fopen(path, "r") else { fatalError("cannot read \(path)") }
        defer { unsafe _ = fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe fread(&chunk, 1, chunk.count, file)
            if count == 0 { return bytes }
            bytes += chunk[..<count]
        }
    }
}

/// A source of numbers that gives the same ones for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
#endif
