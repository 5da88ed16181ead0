/** @tier both @quarter 1 @covers tools/scripts/fuzz_dns.ts engines/dns */
// Damaged and hostile packets: some always the same ones in every run, a million others in the heavy tier.
// tools/scripts/fuzz_dns.ts says what is looked at.
import { isHeavyRun } from '../../support/processes/kills';
import { endPrograms, startProgram } from '../../support/processes/program';
import { fuzzSeed } from '../../support/runner/seeded_random';

const PACKETS = isHeavyRun() ? 1_000_000 : 60_000;

jest.setTimeout(600_000);

afterAll(endPrograms);

test('nothing is thrown, responses are well-formed, good queries are answered, and memory does not grow', async () => {
  const fuzz = startProgram({}, { entry: 'tools/scripts/fuzz_dns.ts', words: [String(PACKETS), String(fuzzSeed(1))] });
  expect([await fuzz.ended, fuzz.err()]).toEqual([0, '']);
  expect(fuzz.out()).toContain(`${PACKETS} packets`);
});
