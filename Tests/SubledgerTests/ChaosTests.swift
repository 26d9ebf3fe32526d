import Foundation
import TestSupport
import Testing

/// The short form of `subledger bench chaos`, with a plan that never changes.
@Suite struct ChaosTests {
    /// Service and PostgreSQL are killed under load, each alone and both: what was acknowledged is
    /// there, once and byte for byte, and is shown.
    @Test func whatWasAcknowledgedSurvivesWhateverIsKilled() throws {
        let folder = try WorkingFolder()
        let run = try Subledger.run(
            "bench",
            "chaos",
            "--seconds",
            "5",
            "--seed",
            "7",
            "--rate",
            "30",
            in: folder.path
        )
        #expect(run.status == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains("every promise was kept"))
        #expect(!run.output.contains("both 0 times"))
    }

    @Test func anUnknownScenarioIsNamed() throws {
        let folder = try WorkingFolder()
        let run = try Subledger.run("bench", "chaos", "--scenario", "flood", in: folder.path)
        #expect(run.status == 2)
        #expect(run.errors.contains("--scenario is one of kills, snapshot"))
    }
}
