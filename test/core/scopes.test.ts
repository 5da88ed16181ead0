import { budgetOf, defaultScope, isScopeRule, scopes } from '../../core/accounts/scopes';

test('the six scopes of the contract, each explained', () => {
  expect(Object.keys(scopes)).toEqual(['read', 'write', 'deploy', 'env:read', 'env:write', 'logs:read']);
  for (const { description } of Object.values(scopes)) expect(description).toMatch(/\.$/);
});

test('rules are scopes, any and none, and nothing else', () => {
  for (const rule of [...Object.keys(scopes), 'any', 'none']) expect(isScopeRule(rule)).toBe(true);
  for (const rule of ['', 'admin', 'Read', 'toString', '__proto__']) expect(isScopeRule(rule)).toBe(false);
});

test('a query reads and a mutation writes', () => {
  expect(defaultScope('query')).toBe('read');
  expect(defaultScope('mutation')).toBe('write');
});

test('the budget follows the kind, and deployments have their own', () => {
  expect(budgetOf('query', 'env:read')).toBe('read');
  expect(budgetOf('query', 'any')).toBe('read');
  expect(budgetOf('mutation', 'env:write')).toBe('write');
  expect(budgetOf('mutation', 'deploy')).toBe('deploy');
});
