/** @tier heavy @quarter 2 @covers tools/scripts/new tools/scripts/new.mjs test/conformance */
// The driver that `npm run new -- <kind> --driver` writes passes the suite of all drivers, in a copy of the project.
import path from 'node:path';
import { copyProject, ROOT, type GeneratedProject } from '../../support/runner/generated_project';

let project: GeneratedProject;

beforeAll(() => {
  project = copyProject();
  expect(project.generate('engine_room', '--group', 'Volumes', '--driver', '--prefix', 'egr')).toMatchObject({
    status: 0,
  });
});

afterAll(() => project.remove());

test('a generated driver passes the conformance suite that is written along with it', () => {
  const jest = path.join(ROOT, 'node_modules/jest/bin/jest.js');
  const { status, output } = project.run(
    ...[jest, 'test/engines/volumes/engine_room_conformance.test.ts', '--reporters', 'default'],
  );
  expect(output).toMatch(/Tests: +1[0-9] passed, 1[0-9] total/);
  expect(status).toBe(0);
}, 300_000);
