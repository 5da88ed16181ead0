// Custom domains in tests: added, proven and looked at over HTTP.
import type { DnsServer } from './dns_server';
import type { Answer, CallOptions, TestService } from '../service';

export const INGRESS = { APPS_DOMAIN: 'apps.example.net', INGRESS_HOST: 'ingress.example.net' };
export const IPV4 = '192.0.2.10';
export const IPV6 = '2001:db8::10';

export interface Instruction {
  purpose: string;
  type: string;
  name: string;
  value: string;
  status: string;
  observed_values: string[];
}

/** A domain as it was answered, as far as tests read it. */
export interface DomainBody {
  id: string;
  application_id: string;
  hostname: string;
  type: string;
  status: string;
  status_reason: string | null;
  verified_at: string | null;
  last_checked_at: string | null;
  updated_at: string;
  dns_instructions: Instruction[];
}

/** What tests do with the domains of one service. */
export interface Domains {
  newApplication(name: string, options?: CallOptions): Promise<string>;
  add(hostname: string, application: string, options?: CallOptions): Promise<Answer>;
  added(hostname: string, application: string): Promise<DomainBody>;
  verify(domain: { id: string; application_id: string }): Promise<Answer>;
  verified(domain: { id: string; application_id: string }): Promise<DomainBody>;
  move(domain: { id: string; application_id: string }, body: object): Promise<Answer>;
  find(hostname: string, application: string): Promise<DomainBody | undefined>;
  /** Creates the record that an instruction asks for. */
  obey(instruction: Instruction): void;
}

export function domainsPath(application: string, domain?: string): string {
  return `/v2/applications/${application}/domains${domain ? `/${domain}` : ''}`;
}

export function instruction(domain: DomainBody, purpose: string, type?: string): Instruction {
  const found = domain.dns_instructions.find((one) => one.purpose === purpose && (!type || one.type === type));
  if (!found) throw new Error(`${domain.hostname} has no instruction for ${purpose}`);
  return found;
}

export function domainsOf(service: TestService, dns: DnsServer): Domains {
  const expectStatus = (answer: Answer, status: number): Answer['body'] => {
    if (answer.status !== status) throw new Error(`expected ${status}: ${answer.text}`);
    return answer.body;
  };
  const self: Domains = {
    newApplication: async (name, options) =>
      expectStatus(await service.call('POST', '/v2/applications', { body: { name }, ...options }), 201).id,
    add: (hostname, application, options) =>
      service.call('POST', domainsPath(application), { body: { hostname }, ...options }),
    added: async (hostname, application) => expectStatus(await self.add(hostname, application), 201),
    verify: ({ id, application_id }) => service.call('POST', `${domainsPath(application_id, id)}/verify`),
    verified: async (domain) => expectStatus(await self.verify(domain), 200),
    move: ({ id, application_id }, body) => service.call('POST', `${domainsPath(application_id, id)}/move`, { body }),
    find: async (hostname, application) =>
      (await service.call('GET', `${domainsPath(application)}?hostname=${encodeURIComponent(hostname)}`)).body.data[0],
    obey: ({ name, type, value }) => dns.set(name, type, [value]),
  };
  return self;
}
