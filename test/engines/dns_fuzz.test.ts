// A million damaged and hostile packets, always the same ones; scripts/fuzz_dns.ts says what is looked at.
import { endPrograms, startProgram } from '../support/program';

jest.setTimeout(600_000);

afterAll(endPrograms);

test('nothing is thrown, responses are well-formed, good queries are answered, and memory does not grow', async () => {
  const fuzz = startProgram({}, { entry: 'scripts/fuzz_dns.ts', words: ['1000000', '1'] });
  expect([await fuzz.ended, fuzz.err()]).toEqual([0, '']);
  expect(fuzz.out()).toContain('1000000 packets');
});
