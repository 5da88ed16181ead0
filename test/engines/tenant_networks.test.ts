// Networks of projects, as root: by namespaces, pairs of interfaces and rules of the packet filter.
import { networkCases } from '../support/network_cases';

const asRoot = process.getuid?.() === 0 ? describe : describe.skip;

asRoot('networks of projects, as root', () => {
  networkCases();
});
