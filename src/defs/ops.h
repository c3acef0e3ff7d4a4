/* ops.h: properties of opcodes. Host only.
 *
 * The opcodes themselves are numbers made from op.def, op_loop.def and real.def: OP_… in codes/control.h, codes/loop.h
 * and codes/op.h, which those include who name one. */
#ifndef WF_DEFS_OPS_H
#define WF_DEFS_OPS_H

#include "base/mem.h"
#include "defs/types.h"

/* Flags. HOST: the CPU only. RARE: not in the GPU's virtual machine, and few have vector loops. From
 * SHAPES on they are those of control opcodes; op.def says what they mean. */
enum {
    OP_NONE = 0,
    OP_CONTROL = 1,
    OP_FAULTS = 2,
    OP_HOST = 4,
    OP_MAKES = 8,
    OP_RARE = 16,
    OP_SHAPES = 32,
    OP_REPEATS = 64,
    OP_OPENS = 128,
    OP_CLOSES = 256,
    OP_FETCHES = 512,
    OP_EMITS = 1024
};
enum { KIND_NONE = 255 };
/* Runs that one MEET or COMMON walks: of all inputs that are ordered together (opt/join_order.c) but one. */
enum { MEET_LISTS_MOST = 63 };

/* What a field of `struct op` holds. */
#define X(A, c_name, name, bytes) ROLE_##c_name,
enum role {
    ROLE_no,            /* nothing */
    WF_KINDS(X, )       /* a register of that kind */
    ROLE_b8_if,         /* the same; NO_REG: none */
    ROLE_intern_key,    /* i64 where INTERN's mode asks for a key, else nothing */
    ROLE_words,         /* the first of as many i64 registers as `count` says */
    ROLE_as_literal,    /* dst: of the literal's kind */
    ROLE_as_column,     /* dst: of the source column's */
    ROLE_as_var_column, /* dst: of the variable's column's */
    ROLE_as_table,      /* dst: of the table's */
    ROLE_as_sum,        /* dst: f64, or another kind that the opcode rounds to */
    ROLE_rows,          /* variables: relations, */
    ROLE_index,         /* indexes, */
    ROLE_table,         /* lookup tables, */
    ROLE_interner,      /* interners */
    ROLE_literal,
    ROLE_column,     /* of the source */
    ROLE_var_column, /* of the variable in b */
    ROLE_sink,
    ROLE_match_flags, /* PROBE_…; NO_REG: none */
    ROLE_intern_mode, /* enum intern_mode */
    ROLE_find,        /* 1: find only */
    ROLE_half,        /* of a pair: 0 or 1 */
    ROLE_outer_row,   /* 1: row -1 may come */
    ROLE_count,
    ROLE_number
};
#undef X
/* The fields. */
enum operand { OPERAND_DST, OPERAND_A, OPERAND_B, OPERAND_C, OPERAND_IMM, OPERAND_COUNT };

struct op_info {
    const char *name;
    u16 flags;
    u8 arity;
    u8 result;               /* enum kind; KIND_NONE for control opcodes */
    u8 operands[3];          /* enum kind or KIND_NONE */
    u8 roles[OPERAND_COUNT]; /* enum role, of every opcode */
    u16 cost;
    const char *part; /* helper text the woven kernel needs: "core", "int", … */
    const char *expr; /* the expression's text; host opcodes: NULL; control opcodes: how operands are
                         printed */
    const char *text; /* synopsis */
};
extern const struct op_info op_infos[]; /* by opcode */

/* A literal or a single value, wide enough for every kind. */
union lit {
    b8 b8;
    i32 i32;
    i64 i64;
    i128 i128;
    f32 f32;
    f64 f64;
    str str;
};

/* What a kernel has in place of a host opcode whose second operand is a literal: it finds that one
 * worked out ahead. NULL: none. */
struct op_ahead {
    u16 code;
    const char *part, *expr;
};
const struct op_ahead *op_ahead(u16 code);
/* The same of a host opcode that it has in part. */
const struct op_ahead *op_partly(u16 code);

#endif
