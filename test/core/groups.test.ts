import { groups, isGroup } from '../../core/groups';

test('19 groups with 253 operations, each explained', () => {
  expect(groups).toHaveLength(19);
  expect(groups.reduce((sum, group) => sum + group.operations, 0)).toBe(253);
  for (const { description } of groups) expect(description).toMatch(/\.$/);
});

test('names are known exactly', () => {
  expect(groups.every((group) => isGroup(group.name))).toBe(true);
  expect(isGroup('volumes')).toBe(false);
  expect(isGroup('')).toBe(false);
});
