/** @tier heavy @quarter 1 @covers contract/stack models/stacks resolvers/stacks */
// Made-up projects and edits, those of a new seed each time.
import { describeHost } from '../support/databases/databases';
import { fuzzSeed } from '../support/runner/seeded_random';
import { startService, type TestService } from '../support/service';
import { checkRandomStack } from '../support/stacks/random_stacks';

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await describeHost(service);
});
afterAll(() => service.close());

test('of 200 projects, each plan is applied as it is, or nothing is', async () => {
  const first = fuzzSeed(1000);
  let applied = 0;
  for (let seed = first; seed < first + 200; seed += 1)
    if ((await checkRandomStack(service, seed)) === 'applied') applied += 1;
  expect(applied).toBeGreaterThan(50);
}, 600_000);
