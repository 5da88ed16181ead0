// The bin as the tests of its kinds call it.
import path from 'node:path';
import type { Answer, CallOptions, TestService } from './service';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
export interface BinCalls {
  /** Deletes a resource. @returns its entry */
  deleted(place: string): Promise<any>;
  entryOf(id: string): Promise<any>;
  restore(entry: { id: string }, body?: object, options?: CallOptions): Promise<Answer>;
  /** The same, where it must work. @returns its notes */
  restored(entry: { id: string }, body?: object): Promise<string[]>;
  purge(entry: { id: string }, options?: CallOptions): Promise<Answer>;
  /** Its time is over, and the periodic task is due. */
  expire(entry: { id: string }): Promise<void>;
  /** Options of a call by somebody else, in a project of theirs. */
  stranger(): Promise<{ key: string; project: string }>;
  /** Status codes of answers, in order. */
  race(...all: Promise<Answer>[]): Promise<number[]>;
}

export function binCalls(service: () => TestService): BinCalls {
  const call: TestService['call'] = (...args) => service().call(...args);
  const calls: BinCalls = {
    async deleted(place) {
      const { status, text } = await call('DELETE', place);
      expect([status, text]).toEqual([204, '']);
      return calls.entryOf(path.basename(place));
    },
    async entryOf(id) {
      const { status, body } = await call('GET', `/v2/projects/${service().project}/bin?resource_id=${id}`);
      expect(status).toBe(200);
      return body.data[0];
    },
    restore: (entry, body, options = {}) =>
      call('POST', `/v2/bin/${entry.id}/restore`, { ...(body && { body }), ...options }),
    async restored(entry, body) {
      const answer = await calls.restore(entry, body);
      expect([answer.status, answer.text]).toEqual([200, expect.anything()]);
      return answer.body.notes;
    },
    purge: (entry, options = {}) => call('DELETE', `/v2/bin/${entry.id}`, options),
    async expire(entry) {
      await service().sql('update deleted_resources set kept_until = now() where id = $1', [entry.id]);
      await service().sql(`update schedules set next_at = now() where id = 'empty_bin'`);
    },
    async stranger() {
      const { key, id } = await service().newProject({ stranger: true });
      return { key, project: id };
    },
    race: async (...all) => (await Promise.all(all)).map(({ status }) => status).sort(),
  };
  return calls;
}
