import { groups, isExtensionGroup, isGroup, type Group } from '../../core/groups';

test('19 groups with 253 operations, and extensions, each explained', () => {
  expect(groups.filter(({ name }) => !isExtensionGroup(name))).toHaveLength(19);
  for (const { name, operations } of groups as readonly Group[]) expect(operations === 0).toBe(isExtensionGroup(name));
  expect(groups.reduce((sum, group) => sum + group.operations, 0)).toBe(253);
  for (const { description } of groups) expect(description).toMatch(/\.$/);
});

test('names are known exactly', () => {
  expect(groups.every((group) => isGroup(group.name))).toBe(true);
  expect(isGroup('volumes')).toBe(false);
  expect(isGroup('')).toBe(false);
});
