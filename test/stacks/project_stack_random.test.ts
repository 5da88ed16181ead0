// A dozen made-up projects and edits; project_stack_many.test.ts has hundreds.
import { describeHost } from '../support/databases/databases';
import { startService, type TestService } from '../support/service';
import { checkRandomStack } from '../support/stacks/random_stacks';

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await describeHost(service);
});
afterAll(() => service.close());

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])('project %i: a plan is applied as it is, or nothing is', (seed) =>
  checkRandomStack(service, seed),
);
