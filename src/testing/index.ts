export { type ManualClock, manualClock } from './clock.ts';
export { type StoreContractCase, storeContract } from './contract.ts';
