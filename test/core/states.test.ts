import { defineStates } from '../../core/states';

const machine = defineStates({
  initial: ['provisioning'],
  moves: {
    provisioning: ['available', 'in_use', 'failed'],
    available: ['in_use', 'resizing'],
    in_use: ['available', 'resizing'],
    resizing: ['available', 'in_use'],
    failed: ['provisioning'],
  },
  transitional: ['provisioning', 'resizing'],
});

test('knows all states and what leads where', () => {
  expect([...machine.all].sort()).toEqual(['available', 'failed', 'in_use', 'provisioning', 'resizing']);
  expect(machine.predecessors('available').sort()).toEqual(['in_use', 'provisioning', 'resizing']);
  expect(machine.predecessors('failed')).toEqual(['provisioning']);
  expect(machine.moves.available).toEqual(['in_use', 'resizing']);
});

test('a settled state may be the last', () => {
  const states = defineStates({ initial: ['pending'], moves: { pending: ['done'] }, transitional: ['pending'] });
  expect(states.moves.done).toEqual([]);
});

test('refuses states that cannot be reached', () => {
  expect(() => defineStates({ initial: ['new'], moves: { new: ['ready'], lost: ['ready'] } as never })).toThrow(
    'no move leads to the state "lost"',
  );
  expect(() => defineStates({ initial: ['new'], moves: {}, transitional: ['lost'] as never })).toThrow(
    'no move leads to the state "lost"',
  );
});

test('refuses transitional states without a way out', () => {
  expect(() => defineStates({ initial: ['new'], moves: { new: ['working'] }, transitional: ['working'] })).toThrow(
    '"working" has no way out',
  );
  const circle = {
    initial: ['starting'] as const,
    moves: { starting: ['stopping'], stopping: ['starting'] } as const,
    transitional: ['starting', 'stopping'] as const,
  };
  expect(() => defineStates(circle)).toThrow('"starting" has no way out');
});

test('predecessors of an unknown state are a mistake of the program', () => {
  expect(() => machine.predecessors('availabel')).toThrow('not a state');
});

test('a machine cannot be changed', () => {
  expect(() => Object.assign(machine, { all: [] })).toThrow(TypeError);
  expect(() => (machine.all as string[]).push('other')).toThrow(TypeError);
});
