export {
  type AuthInfo,
  type McpGuard,
  type McpGuardOptions,
  type McpOutcome,
  type McpReason,
  type McpRefusal,
  mcpGuard,
} from './guard.ts';
export { toolScope } from './needs.ts';
