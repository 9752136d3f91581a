export type { Scratch } from '../ports/engine-store.ts';
export { type ManualClock, manualClock } from './clock.ts';
export { type StoreContractCase, storeContract } from './contract.ts';
export { type ContractOptions, type ContractReport, contractReport } from './contract-report.ts';
export { faults, type StoreFault, withFaults } from './faults.ts';
export { type LeaseContractCase, leaseContract } from './lease-contract.ts';
export { type RequestContractCase, requestContract } from './request-contract.ts';
export { type UsageContractCase, usageContract } from './usage-contract.ts';
