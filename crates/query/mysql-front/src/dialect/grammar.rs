//! MySQL's grammar for sqlparser: its MySQL dialect, with the precedence of DIV, `->` and `->>` as MySQL has it.
//!
//! sqlparser's own dialect reads everything after DIV as its divisor, and `a -> '$.x' = 1` as `a -> ('$.x' = 1)`.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use datafusion::sql::sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// MySQL's dialect.
#[derive(Debug, Default)]
pub(super) struct MysqlGrammar(MySqlDialect);

/// Methods that answer as sqlparser's dialect does.
macro_rules! as_mysql {
    ($($method:ident),* $(,)?) => {
        $(fn $method(&self) -> bool {
            self.0.$method()
        })*
    };
}

impl Dialect for MysqlGrammar {
    /// The parser asks in places whether it reads MySQL.
    fn dialect(&self) -> TypeId {
        self.0.dialect()
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        self.0.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        self.0.is_identifier_part(letter)
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        self.0.is_delimited_identifier_start(letter)
    }

    fn identifier_quote_style(&self, name: &str) -> Option<char> {
        self.0.identifier_quote_style(name)
    }

    as_mysql!(
        supports_string_literal_backslash_escape,
        supports_string_literal_concatenation,
        ignores_wildcard_escapes,
        supports_numeric_prefix,
        supports_bitwise_shift_operators,
        supports_multiline_comment_hints,
        require_interval_qualifier,
        supports_limit_comma,
        supports_match_against,
        supports_select_modifiers,
        supports_table_hints,
        requires_single_line_comment_whitespace,
        supports_data_type_signed_suffix,
        supports_cross_join_constraint,
        supports_double_ampersand_operator,
        supports_binary_kw_as_cast,
        supports_comment_optimizer_hint,
    );

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.0.is_table_factor_alias(explicit, keyword, parser)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::Arrow | Token::LongArrow => Some(Ok(self.prec_value(Precedence::DoubleColon))),
            _ => None,
        }
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        parser.parse_keyword(Keyword::DIV).then(|| {
            let right = Box::new(parser.parse_subexpr(precedence)?);
            let left = Box::new(left.clone());
            Ok(Expr::BinaryOp { left, op: BinaryOperator::MyIntegerDivide, right })
        })
    }
}
