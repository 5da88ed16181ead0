// The ingress process, where instances are on this machine.
import { runIngressProcess } from './program';

void runIngressProcess();
