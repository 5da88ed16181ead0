/** @user any */
// What is computed for a server of PostgreSQL, without one.
import { quoted } from '../../../drivers/database/postgresql/configuration';
import { stageFor } from '../../../drivers/database/postgresql/storage';

test('values of the configuration are quoted', () => {
  expect(quoted("it's \\ so")).toBe("'it''s \\\\ so'");
  expect(() => quoted('a\nb')).toThrow('line break');
});

test('the stages of a full server do not go back and forth', () => {
  expect([
    stageFor(0.99, 'none'),
    stageFor(1, 'none'),
    stageFor(0.97, 'soft'),
    stageFor(0.94, 'soft'),
    stageFor(1.1, 'soft'),
    stageFor(1.05, 'hard'),
    stageFor(0.97, 'hard'),
  ]).toEqual(['none', 'soft', 'soft', 'none', 'hard', 'hard', 'soft']);
});
