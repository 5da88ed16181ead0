// Every dashboard function, taken from the schema: any key gets 403 dashboard_only, nobody gets 401 session_required.
import {
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  type GraphQLArgument,
  type GraphQLInputType,
} from 'graphql';
import { isScope, scopes } from '../../core/accounts/scopes';
import type { RootField } from '../../contract/operations';
import { buildCore } from '../../resolvers';
import { startService, type TestService } from '../support/service';

const fields = [...buildCore().table.fields.values()].filter((field) => field.session !== false);
const signedIn = fields.filter((field) => field.session === 'signedIn');

let service: TestService;
let keys: Record<string, string>;
beforeAll(async () => {
  service = await startService();
  keys = {
    'personal key': service.key,
    'read-only key': await service.mintKey({ scopes: ['read'] }),
    'restricted key': await service.mintKey({ project_ids: [service.project] }),
    'viewer key': await service.mintKey({ role: 'viewer' }),
    'project key': await service.mintKey({ kind: 'project' }),
  };
});
afterAll(() => service.close());

test('the dashboard functions are those of the documentation', () => {
  expect(fields.map(({ name }) => name).sort()).toEqual([
    'acceptInvitation',
    'billingSummary',
    'changeMemberRole',
    'changePassword',
    'chooseAlarmNotifiers',
    'cleanBuildCaches',
    'confirmEmail',
    'confirmTwoFactor',
    'createPersonalKey',
    'createProjectKey',
    'disableTwoFactor',
    'endUserSessions',
    'enrolTwoFactor',
    'exportInstallationActivity',
    'installation',
    'installationAlarms',
    'installationBackups',
    'installationDiskUse',
    'installationMachine',
    'installationProcesses',
    'installationState',
    'inviteMember',
    'listInstallationActivity',
    'listInstallationProjects',
    'listInstallationUsers',
    'listInvitations',
    'listLinkedLogins',
    'listMembers',
    'listPersonalKeys',
    'listProjectKeys',
    'listSessions',
    'listUserSessions',
    'login',
    'loginMethods',
    'logout',
    'regenerateRecoveryCodes',
    'removeMember',
    'requestEmailConfirmation',
    'requestPasswordReset',
    'resetPassword',
    'revokeInvitation',
    'revokePersonalKey',
    'revokeProjectKey',
    'revokeSession',
    'rollBackInstallation',
    'setUpInstallation',
    'setUpOwner',
    'setupPlan',
    'setupProgress',
    'unlinkLogin',
    'upgradeInstallation',
    'viewer',
  ]);
  expect(
    fields
      .filter(({ session }) => session === 'signedOut')
      .map(({ name }) => name)
      .sort(),
  ).toEqual([
    'acceptInvitation',
    'confirmEmail',
    'login',
    'loginMethods',
    'requestPasswordReset',
    'resetPassword',
    'setUpOwner',
    'setupProgress',
  ]);
  expect(fields.every(({ operations }) => operations.length === 0)).toBe(true);
  expect(Object.keys(scopes).every(isScope)).toBe(true);
});

test.each(fields.map((field) => [field.name, field] as const))('%s refuses every key', async (_, field) => {
  for (const [kind, key] of Object.entries(keys)) {
    const { errors } = await service.graphql(operationOf(field), {}, { key });
    expect([kind, errors?.[0].extensions.code, errors?.[0].extensions.status]).toEqual([kind, 'dashboard_only', 403]);
  }
});

test.each(signedIn.map((field) => [field.name, field] as const))('%s needs a session', async (_, field) => {
  const { errors } = await service.graphql(operationOf(field), {}, { key: null });
  expect(errors?.[0].extensions).toMatchObject({ code: 'session_required', status: 401 });
});

/** The field called with some values of the right types. */
function operationOf(field: RootField): string {
  const args = field.definition.args
    .filter(({ type }) => isNonNullType(type))
    .map((argument) => `${argument.name}: ${literal(argument.type)}`);
  const leaf = String(getNullableType(field.definition.type)) === 'Boolean';
  return `${field.kind} { ${field.name}${args.length ? `(${args.join(', ')})` : ''}${leaf ? '' : ' { __typename }'} }`;
}

function literal(type: GraphQLArgument['type']): string {
  const plain = getNullableType(type) as GraphQLInputType;
  if (isListType(plain)) return `[${literal(plain.ofType as GraphQLInputType)}]`;
  if (isEnumType(plain)) return plain.getValues()[0]?.name as string;
  if (!isInputObjectType(plain)) return '"x"';
  const fields = Object.values(plain.getFields()).filter((field) => isNonNullType(field.type));
  return `{ ${fields.map((field) => `${field.name}: ${literal(field.type)}`).join(', ')} }`;
}
