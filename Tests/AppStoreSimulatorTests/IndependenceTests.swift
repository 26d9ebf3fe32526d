import FoundationEssentials
import Testing

/// The simulator keeps its truth by itself: comparing it with the product proves something only
/// as long as the two share no code.
@Suite struct IndependenceTests {
    @Test func theSimulatorImportsNothingOfTheProductButCrypto() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let folder = root.appending(path: "Sources/AppStoreSimulator").resolvingSymlinksInPath()
        // The fake App Store stands in a folder below.
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        #expect(names.count > 10 && names.contains { $0.hasPrefix("Store/") })
        var imports: Set<String> = []
        for name in names where name.hasSuffix(".swift") {
            let data = try Data(contentsOf: folder.appending(path: name))
            for line in String(decoding: data, as: UTF8.self).split(separator: "\n") {
                let words = line.split(separator: " ")
                guard let index = words.firstIndex(of: "import"), index <= 1 else { continue }
                imports.insert(String(words[index + 1]))
            }
        }
        #expect(imports == ["Crypto", "Dispatch", "Synchronization"])
    }
}
